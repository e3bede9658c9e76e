#include "runtime/house_json.h"

#include <fmt/format.h>

#include <algorithm>

namespace cadans::runtime {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMany = 1 << 24;  ///< tokens

/// Takes whole numbers out of objects and remembers the first that was wrong.
class Reader {
  public:
    template <class T>
    void take(const Json& from, const char* key, uint64_t least, uint64_t most, T& out) {
        const bool there = from.is_object() && from.contains(key) && from[key].is_number_unsigned();
        const uint64_t value = there ? from[key].get<uint64_t>() : 0;
        if (!there || value < least || value > most) {
            if (wrong_.empty()) wrong_ = fmt::format("{} must be a whole number from {} to {}", key, least, most);
            return;
        }
        out = static_cast<T>(value);
    }
    const Json& list(const Json& from, const char* key) {
        static const Json kNone = Json::array();
        if (from.is_object() && from.contains(key) && from[key].is_array()) return from[key];
        if (wrong_.empty()) wrong_ = fmt::format("{} must be a list", key);
        return kNone;
    }
    const std::string& wrong() const { return wrong_; }

  private:
    std::string wrong_;
};

StepCost read_cost(const Json& json, Reader& reader) {
    StepCost cost;
    reader.take(json, "weights_ps", 0, StepCost::kMostPerRow, cost.weights_ps);
    reader.take(json, "row_ps", 0, StepCost::kMostPerRow, cost.row_ps);
    reader.take(json, "step_ps", 0, StepCost::kMostPerRow, cost.step_ps);
    reader.take(json, "prompt_key_ps", 0, StepCost::kMostPerKey, cost.prompt_key_ps);
    reader.take(json, "decode_key_ps", 0, StepCost::kMostPerKey, cost.decode_key_ps);
    reader.take(json, "logits_ps", 0, StepCost::kMostPerRow, cost.logits_ps);
    reader.take(json, "window_tokens", 0, kMany, cost.window_tokens);
    reader.take(json, "window_share", 0, StepCost::kWhole, cost.window_share);
    reader.take(json, "decode_scale", StepCost::kLeastScale, StepCost::kMostScale, cost.decode_scale);
    reader.take(json, "prompt_scale", StepCost::kLeastScale, StepCost::kMostScale, cost.prompt_scale);
    reader.take(json, "prompt_key_scale", StepCost::kLeastScale, StepCost::kMostScale, cost.prompt_key_scale);
    reader.take(json, "verify_scale", StepCost::kLeastScale, StepCost::kMostScale, cost.verify_scale);
    return cost;
}

}  // namespace

Json cost_to_json(const StepCost& cost) {
    return {{"weights_ps", cost.weights_ps},
            {"row_ps", cost.row_ps},
            {"step_ps", cost.step_ps},
            {"prompt_key_ps", cost.prompt_key_ps},
            {"decode_key_ps", cost.decode_key_ps},
            {"logits_ps", cost.logits_ps},
            {"window_tokens", cost.window_tokens},
            {"window_share", cost.window_share},
            {"decode_scale", cost.decode_scale},
            {"prompt_scale", cost.prompt_scale},
            {"prompt_key_scale", cost.prompt_key_scale},
            {"verify_scale", cost.verify_scale}};
}

Result<StepCost> cost_from_json(const Json& json) {
    Reader reader;
    const StepCost cost = read_cost(json, reader);
    if (!reader.wrong().empty()) return bad_input(reader.wrong());
    return cost;
}

Json house_to_json(const sched::House& house) {
    Json models = Json::array();
    for (const ModelFacts& model : house.models) {
        Json groups = Json::array();
        for (const PageGroupFacts& group : model.groups)
            groups.push_back({{"window_tokens", group.window_tokens}, {"bytes_per_page", group.bytes_per_page}});
        models.push_back({{"model", index(model.model)}, {"context_tokens", model.context_tokens}, {"groups", groups}});
    }
    Json costs = Json::array();
    for (const StepCost& cost : house.costs) costs.push_back(cost_to_json(cost));
    Json draft = nullptr;
    if (house.draft) {
        Json drafts_for = Json::array();
        for (const ModelId model : house.draft->drafts_for) drafts_for.push_back(index(model));
        draft = {{"model", index(house.draft->model)}, {"for", drafts_for}};
    }
    return {{"page_tokens", kPageTokens},
            {"page_bytes", house.page_bytes},
            {"prefix_cache", static_cast<uint32_t>(house.prefix_cache)},
            {"limits",
             {{"max_rows", house.limits.max_rows},
              {"max_running", house.limits.max_running},
              {"prefill_chunk", house.limits.prefill_chunk},
              {"gap_us", house.limits.gap}}},
            {"models", models},
            {"draft", draft},
            {"costs", costs}};
}

Result<sched::House> house_from_json(const Json& json, uint32_t vocab_size) {
    Reader reader;
    sched::House house;
    uint32_t page_tokens = 0;
    reader.take(json, "page_tokens", kPageTokens, kPageTokens, page_tokens);
    reader.take(json, "page_bytes", 1, uint64_t{1} << 50, house.page_bytes);
    uint32_t cache = 0;
    reader.take(json, "prefix_cache", 0, 1, cache);
    house.prefix_cache = cache != 0;
    const Json limits = json.is_object() && json.contains("limits") ? json["limits"] : Json();
    reader.take(limits, "max_running", 1, 1 << 16, house.limits.max_running);
    reader.take(limits, "max_rows", uint64_t{house.limits.max_running} + 1, 1 << 20, house.limits.max_rows);
    reader.take(limits, "prefill_chunk", 1, 1 << 20, house.limits.prefill_chunk);
    reader.take(limits, "gap_us", 1, uint64_t{1} << 40, house.limits.gap);
    for (const Json& cost : reader.list(json, "costs")) house.costs.push_back(read_cost(cost, reader));
    for (const Json& one : reader.list(json, "models")) {
        ModelFacts model;
        uint16_t number = 0;
        reader.take(one, "model", 0, UINT16_MAX, number);
        reader.take(one, "context_tokens", 1, kMany, model.context_tokens);
        model.model = ModelId{number};
        if (std::ranges::count(house.models, model.model, &ModelFacts::model) > 0)
            return bad_input(fmt::format("model {} stands there twice", number), "models");
        model.vocab_size = vocab_size;
        for (const Json& group : reader.list(one, "groups")) {
            PageGroupFacts& facts = model.groups.emplace_back();
            reader.take(group, "window_tokens", 0, kMany, facts.window_tokens);
            reader.take(group, "bytes_per_page", 1, uint64_t{1} << 40, facts.bytes_per_page);
        }
        if (model.groups.empty() || model.groups.size() > kMaxPageGroups)
            return bad_input(fmt::format("a model has 1 to {} page groups", kMaxPageGroups), "groups");
        // A pool names every page that could be held; more than this is damage, not a machine.
        if (uint64_t{house.limits.max_running} * (model.context_tokens / kPageTokens + 2) > uint64_t{1} << 26)
            return bad_input("max_running times context_tokens is more than any machine has", "context_tokens");
        house.models.push_back(std::move(model));
    }
    if (json.is_object() && json.contains("draft") && !json["draft"].is_null()) {
        const Json& one = json["draft"];
        uint16_t number = 0;
        reader.take(one, "model", 0, UINT16_MAX, number);
        house.draft = sched::House::DraftModel{ModelId{number}};
        for (const Json& target : reader.list(one, "for")) {
            if (!target.is_number_unsigned() || target.get<uint64_t>() > UINT16_MAX)
                return bad_input("draft names something that is no model", "draft");
            house.draft->drafts_for.push_back(ModelId{target.get<uint16_t>()});
        }
        for (const ModelId target : house.draft->drafts_for)
            if (house.find(target) == nullptr || house.find(house.draft->model) == nullptr)
                return bad_input("draft names a model that is not there", "draft");
    }
    if (!reader.wrong().empty()) return bad_input(reader.wrong());
    if (house.models.empty()) return bad_input("there is no model", "models");
    return house;
}

}  // namespace cadans::runtime
