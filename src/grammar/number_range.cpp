#include "grammar/number_range.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>

namespace cadans::grammar {
namespace {

constexpr int kIntegerDigits = 18, kDigits = 15, kOpenDigits = 9;  // before the point, where a bound is missing

uint64_t power_of_ten(int n) {
    uint64_t value = 1;
    for (; n > 0; n--) value *= 10;
    return value;
}

/// |bound| × 10^fraction as an integer, rounded down, and whether something was cut off. At most 10^18.
struct Scaled {
    uint64_t value;
    bool cut;
};
Scaled scaled(const Decimal& bound, int fraction) {
    const int64_t places = bound.exponent + fraction;
    if (!bound.digits.empty() && places > kIntegerDigits) return {power_of_ten(kIntegerDigits), true};
    uint64_t value = 0;
    for (int64_t i = 0; i < places; i++)
        value = value * 10 + static_cast<uint64_t>(i < static_cast<int64_t>(bound.digits.size())
                                                       ? bound.digits[static_cast<size_t>(i)] - '0'
                                                       : 0);
    return {value, static_cast<int64_t>(bound.digits.size()) > std::max<int64_t>(places, 0)};
}

/// Writes magnitudes low … high, in units of the last fraction digit.
class Writer {
  public:
    Writer(Nfa& nfa, Nfa::State end, int fraction, uint64_t multiple)
        : nfa_(nfa), end_(end), fraction_(fraction), multiple_(multiple) {}

    void write(Nfa::State from, uint64_t low, uint64_t high) {
        for (int digits = 1; digits + fraction_ <= kIntegerDigits; digits++) {
            const uint64_t least = digits == 1 ? 0 : power_of_ten(digits - 1 + fraction_);
            const uint64_t most = power_of_ten(digits + fraction_) - 1;
            const uint64_t a = std::max(low, least), b = std::min(high, most);
            if (a > b) continue;
            spell(low_, a, digits + fraction_);
            spell(high_, b, digits + fraction_);
            tight_.clear();
            digit(from, digits + fraction_, true, true, 0);
        }
    }

  private:
    using Key = std::tuple<int, bool, bool, uint64_t>;

    static void spell(std::array<int, 20>& out, uint64_t value, int digits) {
        for (int i = 0; i < digits; i++, value /= 10) out[static_cast<size_t>(i)] = static_cast<int>(value % 10);
    }

    /// All ways on from a state that has `left` digits before it; low_ and high_ hold the last digit first.
    void digit(Nfa::State from, int left, bool at_low, bool at_high, uint64_t remainder) {
        const auto place = static_cast<size_t>(left - 1);
        const int least = at_low ? low_[place] : 0, most = at_high ? high_[place] : 9;
        for (int d = least; d <= most; d++) {
            const auto c = static_cast<uint8_t>('0' + d);
            nfa_.bytes(from, c, c,
                       behind(left - 1, at_low && d == least, at_high && d == most,
                              (remainder * 10 + static_cast<uint64_t>(d)) % multiple_));
        }
    }

    Nfa::State behind(int left, bool at_low, bool at_high, uint64_t remainder) {
        auto& known = at_low || at_high ? tight_ : free_;
        const auto [at, fresh] = known.try_emplace(Key{left, at_low, at_high, remainder}, 0);
        if (!fresh) return at->second;
        const Nfa::State state = nfa_.add();
        at->second = state;
        if (nfa_.full()) return state;
        // Stopping here leaves zeros for the rest, which may be below the lower bound.
        bool stops = left <= fraction_ && remainder == 0;
        for (int i = 0; i < left && at_low && stops; i++) stops = low_[static_cast<size_t>(i)] == 0;
        if (stops) nfa_.join(state, end_);
        if (left == fraction_ && left > 0)
            digit(nfa_.bytes(state, '.', '.'), left, at_low, at_high, remainder);
        else if (left > 0)
            digit(state, left, at_low, at_high, remainder);
        return state;
    }

    Nfa& nfa_;
    Nfa::State end_;
    int fraction_;
    uint64_t multiple_;
    std::array<int, 20> low_{}, high_{};
    std::map<Key, Nfa::State> tight_, free_;
};

}  // namespace

std::optional<Decimal> Decimal::read(std::string_view text) {
    Decimal out;
    if (text.starts_with('-')) {
        out.negative = true;
        text.remove_prefix(1);
    }
    const size_t e = text.find_first_of("eE");
    std::string_view mantissa = text.substr(0, e);
    if (e != std::string_view::npos) {
        int64_t exponent = 0;
        bool below = false;
        for (const char c : text.substr(e + 1)) {
            if (c == '-') below = true;
            if (c >= '0' && c <= '9') exponent = std::min<int64_t>(exponent * 10 + (c - '0'), 1'000'000);
        }
        out.exponent = below ? -exponent : exponent;
    }
    bool point = false;
    for (const char c : mantissa) {
        if (c == '.') {
            point = true;
            continue;
        }
        if (c < '0' || c > '9') return std::nullopt;
        if (!point) out.exponent++;
        out.digits += c;
    }
    while (!out.digits.empty() && out.digits.front() == '0') {
        out.digits.erase(out.digits.begin());
        out.exponent--;
    }
    while (!out.digits.empty() && out.digits.back() == '0') out.digits.pop_back();
    if (out.digits.empty()) return Decimal{};
    return out;
}

int compare(const Decimal& a, const Decimal& b) {
    const auto sign = [](const Decimal& d) { return d.digits.empty() ? 0 : d.negative ? -1 : 1; };
    if (sign(a) != sign(b)) return sign(a) - sign(b);
    const int same = a.exponent != b.exponent ? (a.exponent < b.exponent ? -1 : 1) : a.digits.compare(b.digits);
    return sign(a) * same;
}

void NumberRange::at_least(const Decimal& bound, bool open) {
    const int order = low ? compare(bound, *low) : 1;
    if (order > 0) low = bound, low_open = open;
    if (order == 0) low_open |= open;
}

void NumberRange::at_most(const Decimal& bound, bool open) {
    const int order = high ? compare(bound, *high) : -1;
    if (order < 0) high = bound, high_open = open;
    if (order == 0) high_open |= open;
}

namespace {

/// Writes what lies in the range with so many digits behind the point, or fewer, and no more than `digits` in all.
void write_units(Nfa& nfa, Nfa::State from, Nfa::State end, const NumberRange& range, int fraction, int digits) {
    const auto most = static_cast<int64_t>(power_of_ten(digits) - 1);
    // In units of the last digit: the lower bound rounded up, the upper one down.
    int64_t low = -most, high = most;
    if (range.low) {
        const auto [value, cut] = scaled(*range.low, fraction);
        const auto exact = static_cast<int64_t>(value);
        low = std::max(low, range.low->negative ? -exact + (range.low_open && !cut ? 1 : 0)
                                                : exact + (cut || range.low_open ? 1 : 0));
    }
    if (range.high) {
        const auto [value, cut] = scaled(*range.high, fraction);
        const auto exact = static_cast<int64_t>(value);
        high = std::min(high, range.high->negative ? -exact - (cut || range.high_open ? 1 : 0)
                                                   : exact - (range.high_open && !cut ? 1 : 0));
    }
    if (low > high) return;
    if (high >= 0)
        Writer(nfa, end, fraction, range.multiple)
            .write(from, static_cast<uint64_t>(std::max<int64_t>(low, 0)), static_cast<uint64_t>(high));
    if (low < 0)
        Writer(nfa, end, fraction, range.multiple)
            .write(nfa.bytes(from, '-', '-'), static_cast<uint64_t>(std::max<int64_t>(1, -high)),
                   static_cast<uint64_t>(-low));
}

}  // namespace

Nfa::State add_number(Nfa& nfa, Nfa::State from, const NumberRange& range) {
    const Nfa::State end = nfa.add();
    if (range.integers || range.multiple != 1) {
        write_units(nfa, from, end, range, 0, kIntegerDigits);
        return end;
    }
    const bool closed = range.low && range.high;
    int64_t whole = closed ? 1 : kOpenDigits;
    for (const auto& bound : {range.low, range.high})
        if (bound) whole = std::max(whole, bound->exponent);
    const auto fraction = static_cast<int>(std::max<int64_t>(0, kDigits - whole));
    write_units(nfa, from, end, range, fraction, kDigits);
    // Without a bound, larger numbers may come too, without a point.
    if (!closed && fraction > 0) write_units(nfa, from, end, range, 0, kDigits);
    return end;
}

}  // namespace cadans::grammar
