// Text of any kind up to a mark: what stands in front of the part of an answer that has a form.
#pragma once

#include <string_view>

#include "grammar/nfa.h"

namespace cadans::grammar {

/// Characters in which `mark` does not occur, and then the mark; returns the state behind it.
///
/// mark       ASCII, not empty
/// not_first  an ASCII character that the text does not begin with; 0: it may begin with any
/// Cost       some 12 edges for each byte of the mark
Nfa::State add_text_until(Nfa& nfa, Nfa::State from, std::string_view mark, char not_first = 0);

}  // namespace cadans::grammar
