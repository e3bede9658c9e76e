#include "sim/load_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/random.h"
#include "sim/draws.h"
#include "sim/trace_lines.h"

namespace cadans::sim {
namespace {

using Settings = std::map<std::string, double, std::less<>>;

constexpr uint32_t kLongest = 100'000;  ///< tokens of a drawn prompt or answer

/// Replaces the defaults by what is said.
Status read_settings(std::string_view text, Settings& settings) {
    if (text.empty()) return Ok{};
    for (const std::string_view part : split(text)) {
        const size_t equals = part.find('=');
        const auto known = settings.find(part.substr(0, equals));
        if (equals == std::string_view::npos || known == settings.end()) {
            std::string names;
            for (const auto& [name, value] : settings) names += (names.empty() ? "" : ", ") + name;
            return bad_input(fmt::format("--load: '{}' is not understood; this kind takes {}", part, names), "--load");
        }
        if (!parse_number(part.substr(equals + 1), known->second))
            return bad_input(fmt::format("--load: '{}' is no number", part), "--load");
    }
    return Ok{};
}

Status within(const Settings& settings, std::string_view name, double least, double most) {
    const double value = settings.find(name)->second;
    if (value >= least && value <= most) return Ok{};
    return bad_input(fmt::format("--load: {} is {}; it must be {} to {}", name, value, least, most), "--load");
}

Result<Workload> renewal(const Settings& settings, bool bursty, Draws draws) {
    for (const auto& [name, least, most] : {std::tuple{"rate", 1e-6, 1e6},
                                            {"requests", 1.0, 1e7},
                                            {"prompt", 1.0, 1e5},
                                            {"output", 1.0, 1e5},
                                            {"spread", 0.0, 3.0}})
        if (Status fits = within(settings, name, least, most); !fits) return std::move(fits).error();
    if (bursty)
        if (Status fits = within(settings, "cv", 0.01, 100); !fits) return std::move(fits).error();
    const auto value = [&](std::string_view name) { return settings.find(name)->second; };
    Workload out;
    double at = 0;
    for (double i = 0; i < value("requests"); i++) {
        if (at > kLongestSeconds)
            return bad_input(fmt::format("--load: {} requests at {} a second take more than thirty years",
                                         value("requests"), value("rate")),
                             "--load");
        Arrival one;
        one.at = std::llround(at * 1e9);
        one.prompt = draws.length(value("prompt"), value("spread"), kLongest);
        one.output = draws.length(value("output"), value("spread"), kLongest);
        out.arrivals.push_back(std::move(one));
        at += bursty ? draws.gamma(1 / value("rate"), value("cv")) : draws.exponential(1 / value("rate"));
    }
    return out;
}

/// How many conversations one person begins in each hour of the day.
constexpr std::array<double, 24> kByHour = {0.1, 0.02, 0.01, 0.01, 0.01, 0.02, 0.1, 0.4, 0.6, 0.5, 0.4, 0.4,
                                            0.5, 0.5,  0.4,  0.4,  0.6,  0.8,  0.9, 1.2, 1.5, 1.3, 0.8, 0.3};

/// A person writes to the model, reads, writes again; every turn resends all that was said.
void converse(Workload& out, double begin, uint64_t person, uint64_t conversation, Draws& draws) {
    const auto add = [&](double at, uint32_t prompt, uint32_t output, Priority priority, uint64_t name) {
        Arrival one;
        one.at = std::llround(at * 1e9);
        one.prompt = prompt;
        one.output = output;
        one.priority = priority;
        one.scope = person;
        for (uint32_t block = 0; block * out.block_tokens < prompt; block++) one.blocks.push_back(mix64(name) + block);
        out.arrivals.push_back(std::move(one));
    };
    const bool document = draws.below(8) == 0;
    uint32_t history = document ? draws.length(5000, 0.6, 30'000) : draws.length(150, 0.5, 2000);
    const uint64_t turns = 1 + draws.below(document ? 4 : 9);
    double at = begin;
    for (uint64_t turn = 0; turn < turns; turn++) {
        history += draws.length(40, 0.9, 4000);
        const uint32_t answer = draws.length(180, 0.7, 2000);
        add(at, history, answer, Priority::normal, conversation);
        if (turn == 0) add(at + 5, std::min(history, 500U) + 60, 8, Priority::background, ~conversation);
        history += answer;
        at += 10 + draws.exponential(60) + answer * 0.15;  // read at six or seven tokens a second, think, type
    }
}

Result<Workload> household(const Settings& settings, Draws draws) {
    for (const auto& [name, least, most] : {std::tuple{"people", 1.0, 1000.0}, {"days", 0.01, 365.0}})
        if (Status fits = within(settings, name, least, most); !fits) return std::move(fits).error();
    Workload out;
    out.block_tokens = 32;
    uint64_t conversation = 0;
    const auto people = static_cast<uint64_t>(settings.find("people")->second);
    const double end = settings.find("days")->second * 86'400;
    for (uint64_t person = 0; person < people; person++) {
        for (double hour = 0; hour * 3600 < end; hour++) {
            const double mean = 3600 / kByHour[static_cast<size_t>(hour) % 24];
            for (double at = draws.exponential(mean); at < 3600; at += draws.exponential(mean))
                if (hour * 3600 + at < end) converse(out, hour * 3600 + at, person + 1, ++conversation, draws);
        }
    }
    std::stable_sort(out.arrivals.begin(), out.arrivals.end(),
                     [](const Arrival& a, const Arrival& b) { return a.at < b.at; });
    return out;
}

}  // namespace

Result<Workload> make_load(std::string_view spec, uint64_t seed) {
    const size_t colon = spec.find(':');
    const std::string_view kind = spec.substr(0, colon);
    Settings settings = {{"rate", 1}, {"requests", 1000}, {"prompt", 512}, {"output", 128}, {"spread", 0.8}};
    if (kind == "gamma") settings["cv"] = 2;
    if (kind == "household") settings = {{"people", 4}, {"days", 1}};
    if (kind != "poisson" && kind != "gamma" && kind != "household")
        return bad_input(fmt::format("--load: '{}' is not known; there are poisson, gamma, household", kind), "--load");
    const std::string_view rest = colon == std::string_view::npos ? std::string_view() : spec.substr(colon + 1);
    if (Status read = read_settings(rest, settings); !read) return std::move(read).error();
    Result<Workload> made =
        kind == "household" ? household(settings, Draws(seed)) : renewal(settings, kind == "gamma", Draws(seed));
    if (!made) return made;
    if (made->arrivals.empty()) return bad_input(fmt::format("--load: '{}' makes no request", spec), "--load");
    made->name = std::string(spec);
    return made;
}

}  // namespace cadans::sim
