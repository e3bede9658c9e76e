// Text of any kind up to a mark: what stands in front of the part of an answer that has a form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grammar/nfa.h"

namespace cadans::grammar {

/// What such a text does not hold.
struct Forbidden {
    std::vector<std::string> first = {};     ///< at its beginning, not even behind white space
    std::vector<std::string> anywhere = {};  ///< of these and the mark none occurs inside another
};

/// Characters in which `mark` does not occur, and then the mark; returns the state behind it.
///
/// mark, forbidden  ASCII, not empty
/// Cost             some 12 edges for each byte of all of them
Nfa::State add_text_until(Nfa& nfa, Nfa::State from, std::string_view mark, const Forbidden& forbidden = {});

}  // namespace cadans::grammar
