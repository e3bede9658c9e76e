#include "base/units.h"

#include <fmt/format.h>

#include <charconv>

namespace cadans {

Result<uint64_t> parse_size(std::string_view text) {
    double number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
    if (unit.ends_with("iB"))
        unit.remove_suffix(2);
    else if (unit.ends_with("B"))
        unit.remove_suffix(1);
    double factor = 0;
    if (unit.empty())
        factor = 1;
    else if (unit == "K" || unit == "k")
        factor = 1024.0;
    else if (unit == "M" || unit == "m")
        factor = 1024.0 * 1024;
    else if (unit == "G" || unit == "g")
        factor = 1024.0 * 1024 * 1024;
    else if (unit == "T" || unit == "t")
        factor = 1024.0 * 1024 * 1024 * 1024;
    if (status != std::errc() || factor == 0 || !(number >= 0) || number * factor > 0x1p60)
        return bad_input(fmt::format("'{}' is not a size; write a number and K, M, G or T, such as 512M", text));
    return static_cast<uint64_t>(number * factor);
}

std::string format_size(uint64_t bytes) {
    constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = static_cast<double>(bytes);
    size_t unit = 0;
    while (value >= 1000 && unit + 1 < std::size(kUnits)) value /= 1024, unit++;
    if (unit == 0) return fmt::format("{} B", bytes);
    return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, kUnits[unit]);
}

std::string format_duration(Nanos span) {
    const double ms = static_cast<double>(span) / 1e6;
    if (ms < 1) return fmt::format("{:.2f} ms", ms);
    if (ms < 10) return fmt::format("{:.1f} ms", ms);
    if (ms < 999.5) return fmt::format("{:.0f} ms", ms);  // what would be rounded to 1000 ms is a second
    if (ms < 59'950) return fmt::format("{:.1f} s", ms / 1000);
    const Nanos seconds = (span + kNanosPerSecond / 2) / kNanosPerSecond;
    return fmt::format("{} min {} s", seconds / 60, seconds % 60);
}

}  // namespace cadans
