#include "serve/dialects/keep_alive.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace cadans::serve {

namespace {

struct Unit {
    std::string_view name;
    double seconds;
};
constexpr std::array kUnits = {Unit{"ns", 1e-9}, Unit{"us", 1e-6}, Unit{"µs", 1e-6}, Unit{"ms", 1e-3},
                               Unit{"s", 1},     Unit{"m", 60},    Unit{"h", 3600}};
constexpr double kLongest = 1e9;  ///< seconds; longer is for ever

Error wrong(std::string_view text) {
    return bad_input(
        "a duration such as \"5m\", \"1h30m\" or a number of seconds was expected, negative for ever, got \"" +
        std::string(text.substr(0, 50)) + "\"");
}

}  // namespace

Nanos keep_alive_of(double seconds) noexcept {
    if (seconds < 0 || seconds >= kLongest) return kForEver;
    return static_cast<Nanos>(seconds * kNanosPerSecond);
}

Result<Nanos> parse_keep_alive(std::string_view text) {
    std::string_view rest = text;
    const bool negative = rest.starts_with('-');
    if (negative || rest.starts_with('+')) rest.remove_prefix(1);
    if (rest.empty()) return wrong(text);
    double seconds = 0;
    for (bool first = true; !rest.empty(); first = false) {
        if (rest.find_first_of("0123456789.") != 0) return wrong(text);  // no "nan" and no "inf"
        double number = 0;
        const auto [end, error] =
            std::from_chars(rest.data(), rest.data() + rest.size(), number, std::chars_format::fixed);
        if (error != std::errc()) return wrong(text);
        rest.remove_prefix(static_cast<size_t>(end - rest.data()));
        if (rest.empty() && first) {
            seconds = number;
            break;
        }
        const size_t letters = std::min(rest.find_first_of("0123456789.+-"), rest.size());
        const std::string_view name = rest.substr(0, letters);
        const Unit* found = nullptr;
        for (const Unit& unit : kUnits)
            if (unit.name == name) found = &unit;
        if (found == nullptr) return wrong(text);
        seconds += number * found->seconds;
        rest.remove_prefix(letters);
    }
    return keep_alive_of(negative ? (seconds > 0 ? -seconds : 0) : seconds);
}

}  // namespace cadans::serve
