// Text of any kind up to a mark: what stands in front of the part of an answer that has a form.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "grammar/nfa.h"

namespace cadans::grammar {

/// Characters in which `mark` does not occur, and then the mark; returns the state behind it.
///
/// mark       ASCII, not empty
/// not_first  what the text does not begin with, not even behind white space; ASCII, not empty
/// Cost       some 12 edges for each byte of the mark and of `not_first`
Nfa::State add_text_until(Nfa& nfa, Nfa::State from, std::string_view mark,
                          std::span<const std::string> not_first = {});

}  // namespace cadans::grammar
