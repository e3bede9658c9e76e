#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/nesting.h"
#include "sim/machine.h"

namespace cadans::sim {
namespace {

constexpr size_t kFitBytes = 1 << 20;

/// The object that holds the coefficients, wherever the document keeps it.
const nlohmann::json* find_cost(const nlohmann::json& node) {
    if (node.is_object() && node.contains("weights_ps")) return &node;
    if (!node.is_structured()) return nullptr;
    for (const auto& part : node)
        if (const nlohmann::json* found = find_cost(part)) return found;
    return nullptr;
}

}  // namespace

Result<Fit> read_fit(const std::string& path) {
    auto text = read_text(path, kFitBytes);
    if (!text) return std::move(text).error();
    if (nesting_of(*text) > kMostNesting)
        return bad_input(fmt::format("{}: nested deeper than {}; this is no cost table", path, kMostNesting), path);
    const auto root = nlohmann::json::parse(*text, nullptr, false);
    const nlohmann::json* found = find_cost(root);
    if (found == nullptr)
        return bad_input(fmt::format("{}: this is no cost table; cadans bench --fit --json prints one", path), path);
    Fit fit{path, {}};
    const auto take = [&](const char* key, uint64_t most, bool required, auto& out) -> Status {
        if (!found->contains(key) && !required) return Ok{};
        if (!found->contains(key) || !(*found)[key].is_number_unsigned() || (*found)[key].get<uint64_t>() > most)
            return bad_input(fmt::format("{}: {} must be a whole number of at most {}", path, key, most), key);
        out = static_cast<std::remove_reference_t<decltype(out)>>((*found)[key].get<uint64_t>());
        return Ok{};
    };
    StepCost& cost = fit.cost;
    for (const Status& taken : {take("weights_ps", StepCost::kMostPerRow, true, cost.weights_ps),
                                take("row_ps", StepCost::kMostPerRow, true, cost.row_ps),
                                take("step_ps", StepCost::kMostPerRow, true, cost.step_ps),
                                take("prompt_key_ps", StepCost::kMostPerKey, true, cost.prompt_key_ps),
                                take("decode_key_ps", StepCost::kMostPerKey, true, cost.decode_key_ps),
                                take("logits_ps", StepCost::kMostPerRow, true, cost.logits_ps),
                                take("window_tokens", UINT32_MAX, false, cost.window_tokens),
                                take("window_share", StepCost::kWhole, false, cost.window_share)})
        if (!taken) return taken.error();
    return fit;
}

}  // namespace cadans::sim
