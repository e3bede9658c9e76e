#include "serve/record/record_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace cadans::serve {

namespace {

using Json = nlohmann::json;

/// Fields of one object, each with what stands for a missing one.
class Fields {
  public:
    explicit Fields(const Json& object) : object_(object) {}

    const Json* find(const char* name) const {
        const auto found = object_.is_object() ? object_.find(name) : object_.end();
        return found == object_.end() || found->is_null() ? nullptr : &*found;
    }
    std::string text(const char* name) const {
        const Json* value = find(name);
        return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
    }
    std::optional<Nanos> span(const char* name) const {
        const Json* value = find(name);
        return value != nullptr && value->is_number_integer() ? std::optional(value->get<Nanos>()) : std::nullopt;
    }
    std::optional<double> rate(const char* name) const {
        const Json* value = find(name);
        return value != nullptr && value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
    }
    uint32_t count(const char* name) const {
        return static_cast<uint32_t>(std::clamp<Nanos>(span(name).value_or(0), 0, UINT32_MAX));
    }

  private:
    const Json& object_;
};

metrics::Receipt receipt_of(const Json& object) {
    metrics::Receipt receipt;
    const Fields fields(object);
    for (uint32_t i = 0; i < metrics::kCauses; ++i) receipt.ns[i] = fields.span(metrics::kCauseNames[i]).value_or(0);
    return receipt;
}

template <size_t N>
std::optional<size_t> place_of(const std::string& text, const std::array<const char*, N>& names) {
    const auto found = std::ranges::find(names, text);
    return found == names.end() ? std::nullopt : std::optional(static_cast<size_t>(found - names.begin()));
}

std::optional<ReuseEnd> reuse_end_of(const std::string& text) {
    for (uint32_t i = 0; i < kReuseEnds; ++i)
        if (text == name(static_cast<ReuseEnd>(i))) return static_cast<ReuseEnd>(i);
    return std::nullopt;
}

}  // namespace

Result<ReadRecord> read_record(std::string_view json) {
    const Json root = Json::parse(json, nullptr, false);
    const Fields fields(root);
    const Json* receipt = root.is_object() ? fields.find("receipt_ns") : nullptr;
    if (receipt == nullptr) return bad_input("this is no record of a request");

    ReadRecord out;
    out.id = fields.text("id");
    out.model = fields.text("model");
    metrics::Explained& explained = out.explained;
    metrics::Figures& figures = explained.figures;
    figures.receipt = receipt_of(*receipt);
    if (const Json* first = fields.find("first_word_ns")) figures.first_word = receipt_of(*first);
    if (const Json* cold = fields.find("cold")) figures.cold = cold->is_boolean() && cold->get<bool>();
    figures.ttft_ns = fields.span("ttft_ns");
    figures.prompt_ns = fields.span("prompt_ns");
    figures.queue_ns = fields.span("queue_ns").value_or(0);
    figures.load_ns = fields.span("load_ns").value_or(0);
    figures.restore_ns = fields.span("restore_ns").value_or(0);
    figures.total_ns = fields.span("total_ns").value_or(0);
    figures.prompt_tokens_per_second = fields.rate("prompt_tokens_per_second");
    figures.output_tokens_per_second = fields.rate("output_tokens_per_second");
    figures.per_output_token_ns = fields.span("per_output_token_ns");
    if (const Json* gaps = fields.find("gap_ns")) {
        const Fields of_gaps(*gaps);
        figures.gap_ns = {of_gaps.span("p50").value_or(0), of_gaps.span("p99").value_or(0),
                          of_gaps.span("max").value_or(0)};
    }
    figures.prompt_tokens = fields.count("prompt_tokens");
    figures.cached_tokens = fields.count("cached_tokens");
    figures.computed_tokens = fields.count("computed_tokens");
    figures.output_tokens = fields.count("output_tokens");
    figures.preemptions = fields.count("preemptions");
    figures.recomputed_tokens = fields.count("recomputed_tokens");

    if (const auto outcome = place_of(fields.text("outcome"), metrics::kOutcomeNames))
        explained.outcome = static_cast<metrics::Outcome>(*outcome);
    explained.stalls = fields.count("stalls");
    if (fields.find("remembered_tokens") != nullptr) explained.remembered_tokens = fields.count("remembered_tokens");
    if (const Json* miss = fields.find("cache_miss")) {
        explained.miss = reuse_end_of(Fields(*miss).text("reason"));
        explained.miss_position = Fields(*miss).count("position");
    }
    return out;
}

}  // namespace cadans::serve
