#include "sim/link.h"

#include <fmt/format.h>

#include "sim/trace_lines.h"

namespace cadans::sim {

Result<double> parse_link_speed(std::string_view text) {
    std::string_view rest = text;
    for (const std::string_view ending : {"/s", "bps", "bit", "b"})
        if (rest.ends_with(ending)) rest.remove_suffix(ending.size());
    double times = 1;
    if (!rest.empty()) {
        const char unit = rest.back();
        times = unit == 'k' || unit == 'K' ? 1e3 : unit == 'M' ? 1e6 : unit == 'G' ? 1e9 : 1;
        if (times > 1) rest.remove_suffix(1);
    }
    double number = 0;
    if (!parse_number(rest, number) || !(number * times >= 1e3) || !(number * times <= 1e15))
        return bad_input(fmt::format("'{}' is no link speed; write bits a second, such as 100M, 1G or 2.5G", text));
    return number * times / 8;
}

std::string format_link_speed(double bytes_per_second) {
    const double bits = bytes_per_second * 8;
    if (bits >= 1e9) return fmt::format("{:.4g} Gbit/s", bits / 1e9);
    return bits >= 1e6 ? fmt::format("{:.4g} Mbit/s", bits / 1e6) : fmt::format("{:.4g} Kbit/s", bits / 1e3);
}

}  // namespace cadans::sim
