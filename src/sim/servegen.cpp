#include "sim/servegen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "sim/draws.h"

namespace cadans::sim {
namespace {

constexpr size_t kLengthsBytes = size_t{64} << 20;
constexpr double kWindowSeconds = 600;

/// Token counts with the share of requests that have at most so many.
using Lengths = std::vector<std::pair<double, uint32_t>>;

uint32_t draw(const Lengths& lengths, Draws& draws) {
    const double wanted = draws.uniform() * lengths.back().first;
    const auto found = std::lower_bound(lengths.begin(), lengths.end(), wanted,
                                        [](const auto& entry, double share) { return entry.first < share; });
    return found->second;
}

/// "{45: 0.0096, 46: 0.0117}", as Python prints a dict.
bool parse_lengths(std::string_view text, Lengths& out) {
    if (!text.starts_with('{') || !text.ends_with('}')) return false;
    text = text.substr(1, text.size() - 2);
    double sum = 0;
    for (std::string_view entry : split(text)) {
        while (entry.starts_with(' ')) entry.remove_prefix(1);
        const size_t colon = entry.find(": ");
        if (colon == std::string_view::npos) return false;
        uint32_t tokens = 0;
        double share = 0;
        if (!parse_count(entry.substr(0, colon), tokens) || !parse_number(entry.substr(colon + 2), share)) return false;
        if (share == 0) continue;
        sum += share;
        out.emplace_back(sum, tokens);
    }
    return !out.empty();
}

struct Window {
    Lengths prompt, output;
};

/// By the second at which they begin to hold.
Result<std::map<double, Window>> read_windows(const std::string& path) {
    auto text = read_text(path, kLengthsBytes);
    if (!text) return std::move(text).error();
    const auto root = nlohmann::json::parse(*text, nullptr, false);
    std::map<double, Window> windows;
    if (!root.is_object()) return bad_input(fmt::format("{}: expected an object of windows", path), path);
    for (const auto& [start, fields] : root.items()) {
        Window window;
        double at = 0;
        const auto field = [&](const char* key, Lengths& out) {
            return fields.is_object() && fields.contains(key) && fields[key].is_string() &&
                   parse_lengths(fields[key].template get_ref<const std::string&>(), out);
        };
        if (!parse_number(start, at) || !field("input_tokens", window.prompt) || !field("output_tokens", window.output))
            return bad_input(fmt::format("{}: window '{}' has no input_tokens and output_tokens", path, start), path);
        windows.emplace(at, std::move(window));
    }
    if (windows.empty()) return bad_input(fmt::format("{}: there are no windows", path), path);
    return windows;
}

}  // namespace

Result<Workload> read_servegen(const std::string& path, Lines& lines, uint64_t seed) {
    const std::string stem = path.substr(0, path.size() - std::string_view("-trace.csv").size());
    auto windows = read_windows(stem + "-dataset.json");
    if (!windows) return std::move(windows).error();
    Workload out;
    Draws draws(seed);
    do {
        const auto fields = split(lines.line());
        double start = 0, rate = 0, cv = 0;
        if (fields.size() < 3 || !parse_number(fields[0], start) || !parse_number(fields[1], rate) ||
            !parse_number(fields[2], cv) || rate > 1e6)
            return bad_input(fmt::format("{}:{}: expected start, rate and variation", path, lines.number()), path);
        if (rate == 0) continue;
        auto window = windows->upper_bound(start);
        if (window != windows->begin()) --window;
        const double end = start + kWindowSeconds;
        for (double at = start + draws.exponential(1 / rate); at < end;) {
            Arrival one;
            one.at = std::llround(at * 1e9);
            one.prompt = draw(window->second.prompt, draws);
            one.output = draw(window->second.output, draws);
            out.arrivals.push_back(std::move(one));
            at += cv > 0 ? draws.gamma(1 / rate, cv) : 1 / rate;
        }
    } while (lines.next());
    return out;
}

}  // namespace cadans::sim
