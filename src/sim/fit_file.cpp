#include <fmt/format.h>

#include "base/file.h"
#include "base/nesting.h"
#include "sim/cost_json.h"

namespace cadans::sim {
namespace {

constexpr size_t kFitBytes = 1 << 20;
constexpr const char* kTable = "cost table";

/// The object that holds the coefficients, wherever the document keeps it.
const nlohmann::json* find_cost(const nlohmann::json& node) {
    if (node.is_object() && node.contains("weights_ps")) return &node;
    if (!node.is_structured()) return nullptr;
    for (const auto& part : node)
        if (const nlohmann::json* found = find_cost(part)) return found;
    return nullptr;
}

}  // namespace

Result<nlohmann::json> parse_document(const std::string& text, const std::string& where, const std::string& expected) {
    if (nesting_of(text) > kMostNesting)
        return bad_input(fmt::format("{}: nested deeper than {}; this is no {}", where, kMostNesting, expected), where);
    return nlohmann::json::parse(text, nullptr, false);
}

bool holds_cost(const nlohmann::json& root) { return find_cost(root) != nullptr; }

Result<Fit> fit_of_json(const nlohmann::json& root, const std::string& path) {
    const nlohmann::json* found = find_cost(root);
    if (found == nullptr)
        return bad_input(fmt::format("{}: this is no cost table; cadans bench --fit --json prints one", path), path);
    Fit fit{path, {}};
    const auto take = [&](const char* key, uint64_t least, uint64_t most, bool required, auto& out) -> Status {
        if (!found->contains(key) && !required) return Ok{};
        const auto number = found->find(key);
        if (number == found->end() || !number->is_number_unsigned() || number->get<uint64_t>() < least ||
            number->get<uint64_t>() > most)
            return bad_input(fmt::format("{}: {} must be a whole number of {} to {}", path, key, least, most), key);
        out = static_cast<std::remove_reference_t<decltype(out)>>(number->get<uint64_t>());
        return Ok{};
    };
    StepCost& cost = fit.cost;
    KvShape kv;
    for (const Status& taken : {take("weights_ps", 0, StepCost::kMostPerRow, true, cost.weights_ps),
                                take("row_ps", 0, StepCost::kMostPerRow, true, cost.row_ps),
                                take("step_ps", 0, StepCost::kMostPerRow, true, cost.step_ps),
                                take("prompt_key_ps", 0, StepCost::kMostPerKey, true, cost.prompt_key_ps),
                                take("decode_key_ps", 0, StepCost::kMostPerKey, true, cost.decode_key_ps),
                                take("logits_ps", 0, StepCost::kMostPerRow, true, cost.logits_ps),
                                take("window_tokens", 0, UINT32_MAX, false, cost.window_tokens),
                                take("window_share", 0, StepCost::kWhole, false, cost.window_share),
                                take("kv_token_bytes", 1, KvShape::kMostTokenBytes, false, kv.token_bytes),
                                take("layers", 1, KvShape::kMostLayers, false, kv.layers)})
        if (!taken) return taken.error();
    if (found->contains("kv_token_bytes")) fit.kv = kv;
    return fit;
}

Result<Fit> read_fit(const std::string& path) {
    auto text = read_text(path, kFitBytes);
    if (!text) return std::move(text).error();
    const auto root = parse_document(*text, path, kTable);
    if (!root) return root.error();
    return fit_of_json(*root, path);
}

}  // namespace cadans::sim
