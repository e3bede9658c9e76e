#include "engine/cost_table.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace cadans::engine {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kKind = "cadans-step-cost";
constexpr int kVersion = 1;

struct Coefficient {
    const char* name;
    uint64_t StepCost::*where;
    uint64_t most;
};
constexpr std::array<Coefficient, 6> kCoefficients = {{
    {"weights_ps", &StepCost::weights_ps, StepCost::kMostPerRow},
    {"row_ps", &StepCost::row_ps, StepCost::kMostPerRow},
    {"step_ps", &StepCost::step_ps, StepCost::kMostPerRow},
    {"prompt_key_ps", &StepCost::prompt_key_ps, StepCost::kMostPerKey},
    {"decode_key_ps", &StepCost::decode_key_ps, StepCost::kMostPerKey},
    {"logits_ps", &StepCost::logits_ps, StepCost::kMostPerRow},
}};

Error missing(const char* field, const char* expected) {
    return bad_input(fmt::format("a cost table has '{}': {}", field, expected), field);
}

Result<uint64_t> count(const Json& object, const char* field, uint64_t most) {
    const auto found = object.find(field);
    if (found == object.end() || !found->is_number_unsigned() || found->get<uint64_t>() > most) {
        return bad_input(fmt::format("a cost table has '{}': a whole number from 0 to {}", field, most), field);
    }
    return found->get<uint64_t>();
}

std::string text_or(const Json& object, const char* field) {
    const auto found = object.find(field);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

double number_or_zero(const Json& object, const char* field) {
    const auto found = object.find(field);
    const double number = found != object.end() && found->is_number() ? found->get<double>() : 0.0;
    return std::isfinite(number) ? number : 0.0;
}

}  // namespace

std::string cpu_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        const size_t colon = line.find(": ");
        if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
    }
    return "unknown";
}

std::string to_json(const CostTable& table) {
    const StepCost& cost = table.fit.cost;
    Json coefficients;
    for (const Coefficient& c : kCoefficients) coefficients[c.name] = cost.*c.where;
    coefficients["window_tokens"] = cost.window_tokens;
    coefficients["window_share"] = cost.window_share;
    if (table.kv_token_bytes > 0) coefficients["kv_token_bytes"] = table.kv_token_bytes;
    if (table.layers > 0) coefficients["layers"] = table.layers;
    const Json json = {{"kind", kKind},
                       {"version", kVersion},
                       {"model", table.key.model},
                       {"fingerprint", table.key.fingerprint},
                       {"cpu", table.key.cpu},
                       {"threads", table.key.threads},
                       {"isa", table.key.isa},
                       {"build", table.key.build},
                       {"kv", table.key.kv},
                       {"cost", coefficients},
                       {"error", {{"median", table.fit.median_error}, {"p90", table.fit.p90_error}}}};
    // Names come from files: what is no UTF-8 is replaced.
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<CostTable> cost_table_from_json(const std::string& text) {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) return bad_input("a cost table is a JSON object, as 'cadans bench --fit --json' prints it");
    if (text_or(json, "kind") != kKind) return missing("kind", "\"cadans-step-cost\"");
    const auto version = count(json, "version", kVersion);
    if (!version || *version != kVersion) return missing("version", "1");
    const auto cost = json.find("cost");
    if (cost == json.end() || !cost->is_object()) return missing("cost", "an object of coefficients");

    CostTable table;
    for (const Coefficient& c : kCoefficients) {
        auto value = count(*cost, c.name, c.most);
        if (!value) return std::move(value).error();
        table.fit.cost.*c.where = *value;
    }
    auto window = count(*cost, "window_tokens", UINT32_MAX);
    if (!window) return std::move(window).error();
    auto share = count(*cost, "window_share", StepCost::kWhole);
    if (!share) return std::move(share).error();
    table.fit.cost.window_tokens = static_cast<uint32_t>(*window);
    table.fit.cost.window_share = static_cast<uint32_t>(*share);
    if (cost->contains("kv_token_bytes")) {
        auto bytes = count(*cost, "kv_token_bytes", uint64_t{1} << 28);
        if (!bytes) return std::move(bytes).error();
        table.kv_token_bytes = *bytes;
    }
    if (cost->contains("layers")) {
        auto layers = count(*cost, "layers", 4096);
        if (!layers) return std::move(layers).error();
        table.layers = static_cast<uint32_t>(*layers);
    }
    auto threads = count(json, "threads", UINT32_MAX);
    if (!threads) return std::move(threads).error();
    table.key = {
        text_or(json, "model"), text_or(json, "fingerprint"), text_or(json, "cpu"), static_cast<uint32_t>(*threads),
        text_or(json, "isa"),   text_or(json, "build"),       text_or(json, "kv")};
    const auto error = json.find("error");
    if (error != json.end() && error->is_object()) {
        table.fit.median_error = number_or_zero(*error, "median");
        table.fit.p90_error = number_or_zero(*error, "p90");
    }
    return table;
}

}  // namespace cadans::engine
