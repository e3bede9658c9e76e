#include "sim/trace_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "sim/servegen.h"
#include "sim/tape_reader.h"
#include "sim/trace_lines.h"

namespace cadans::sim {
namespace {

constexpr size_t kTraceBytes = size_t{1} << 30;

Error bad_line(const Lines& lines, std::string_view what) {
    return bad_input(fmt::format("{}:{}: {}", lines.name(), lines.number(), what), lines.name());
}

/// "2023-11-16 18:15:46.6805900" as nanoseconds since some day; the days are counted as the calendar has them.
bool parse_time(std::string_view text, Nanos& out) {
    uint64_t part[7] = {};
    size_t at = 0;
    for (int i = 0; i < 6; i++) {
        const auto [end, bad] = std::from_chars(text.data() + at, text.data() + text.size(), part[i]);
        if (bad != std::errc()) return false;
        at = static_cast<size_t>(end - text.data()) + (i < 5);
        if (at > text.size()) return false;
    }
    Nanos fraction = 0, unit = kNanosPerSecond;
    if (at < text.size() && text[at] == '.') {
        for (at++; at < text.size() && text[at] >= '0' && text[at] <= '9'; at++) {
            unit /= 10;
            fraction += (text[at] - '0') * unit;
        }
    }
    if (part[0] < 1970 || part[0] > 2200 || part[1] - 1 > 11 || part[2] - 1 > 30 || part[3] > 23 || part[4] > 59 ||
        part[5] > 60)
        return false;
    const auto day = std::chrono::sys_days(std::chrono::year(static_cast<int>(part[0])) /
                                           static_cast<unsigned>(part[1]) / static_cast<unsigned>(part[2]));
    const Nanos seconds = static_cast<Nanos>(part[3] * 3600 + part[4] * 60 + part[5]);
    out = (day.time_since_epoch().count() * 86'400 + seconds) * kNanosPerSecond + fraction;
    return true;
}

Result<Workload> read_azure(Lines& lines) {
    Workload out;
    Nanos first = 0;
    while (lines.next()) {
        const auto fields = split(lines.line());
        Arrival one;
        if (fields.size() != 3 || !parse_time(fields[0], one.at) || !parse_count(fields[1], one.prompt) ||
            !parse_count(fields[2], one.output))
            return bad_line(lines, "expected a time and two counts");
        if (out.arrivals.empty()) first = one.at;
        one.at -= first;
        out.arrivals.push_back(std::move(one));
    }
    return out;
}

Result<Workload> read_lengths(Lines& lines) {
    Workload out;
    out.timed = false;
    while (lines.next()) {
        const auto fields = split(lines.line());
        Arrival one;
        if (fields.size() < 2 || !parse_count(fields[0], one.prompt) || !parse_count(fields[1], one.output))
            return bad_line(lines, "expected two counts: prompt and answer tokens");
        out.arrivals.push_back(std::move(one));
    }
    return out;
}

Result<Workload> read_mooncake(Lines& lines) {
    Workload out;
    do {
        const auto row = nlohmann::json::parse(lines.line(), nullptr, false);
        const auto count = [&](const char* key, uint64_t most) -> std::optional<uint64_t> {
            if (!row.is_object() || !row.contains(key) || !row[key].is_number_unsigned()) return std::nullopt;
            const auto value = row[key].get<uint64_t>();
            return value <= most ? std::optional(value) : std::nullopt;
        };
        const auto at = count("timestamp", 1ULL << 40), prompt = count("input_length", kMostTokens),
                   output = count("output_length", kMostTokens);
        if (!at || !prompt || !output)
            return bad_line(lines, "expected an object with timestamp, input_length and output_length");
        Arrival one;
        one.at = static_cast<Nanos>(*at) * kNanosPerMilli;
        one.prompt = std::max(1U, static_cast<uint32_t>(*prompt));
        one.output = std::max(1U, static_cast<uint32_t>(*output));
        if (row.contains("hash_ids")) {
            for (const auto& id : row["hash_ids"]) {
                if (!id.is_number_integer()) return bad_line(lines, "hash_ids holds something else than numbers");
                one.blocks.push_back(id.get<uint64_t>());
            }
        }
        out.arrivals.push_back(std::move(one));
    } while (lines.next());
    return out;
}

}  // namespace

Result<Workload> read_trace(const std::string& path, uint64_t seed) {
    auto text = read_text(path, kTraceBytes);
    if (!text) return std::move(text).error();
    Lines lines(path, *text);
    if (!lines.next()) return bad_input(fmt::format("{}: the trace is empty", path), path);
    const std::string_view head = lines.line();

    Result<Workload> read = [&]() -> Result<Workload> {
        if (head.starts_with("TIMESTAMP,")) return read_azure(lines);
        if (head.starts_with("num_prefill_tokens,num_decode_tokens")) return read_lengths(lines);
        if (head.starts_with(TapeReader::kMark)) return workload_of_tape(path);
        if (head.starts_with("{")) return read_mooncake(lines);
        if (path.ends_with("-trace.csv")) return read_servegen(path, lines, seed);
        return bad_input(
            fmt::format("{}: this is no trace that is known; its first line is '{}'", path, head.substr(0, 60)), path);
    }();
    if (!read) return read;
    if (read->arrivals.empty()) return bad_input(fmt::format("{}: the trace has no requests", path), path);
    std::stable_sort(read->arrivals.begin(), read->arrivals.end(),
                     [](const Arrival& a, const Arrival& b) { return a.at < b.at; });
    read->name = std::filesystem::path(path).filename().string();
    return read;
}

}  // namespace cadans::sim
