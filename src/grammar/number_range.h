// Numbers between two bounds, digit by digit.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "grammar/nfa.h"

namespace cadans::grammar {

/// A decimal as a text spells it: ± 0.digits × 10^exponent, exactly.
struct Decimal {
    bool negative = false;
    std::string digits = {};  ///< without zeros at the ends; empty for 0
    int64_t exponent = 0;

    static std::optional<Decimal> read(std::string_view text);  ///< a JSON number
    bool whole() const { return static_cast<int64_t>(digits.size()) <= exponent; }
};
int compare(const Decimal& a, const Decimal& b);  ///< below, at, above 0 as a is below, at, above b

struct NumberRange {
    std::optional<Decimal> low, high;
    bool low_open = false, high_open = false;  ///< the bound itself is out
    bool integers = false;
    uint64_t multiple = 1;  ///< of integers

    void at_least(const Decimal& bound, bool open);
    void at_most(const Decimal& bound, bool open);
    bool bounded() const { return low || high || multiple != 1; }
};

/// Writes the numbers of a range: plain decimals without exponent. Integers have at most 18 digits, other numbers at
/// most 15 in all, so that whoever reads them as a double finds them on the same side of the bounds.
///
/// Gives the end; where no number can be written, the end is not reached.
Nfa::State add_number(Nfa& nfa, Nfa::State from, const NumberRange& range);

}  // namespace cadans::grammar
