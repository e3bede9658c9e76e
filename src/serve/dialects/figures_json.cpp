#include "serve/dialects/figures_json.h"

namespace cadans::serve {

namespace {

template <class Number>
void write_or_null(JsonWriter& json, const std::optional<Number>& number) {
    if (number)
        json.number(*number);
    else
        json.null();
}

void write_if_known(JsonWriter& json, const char* name, const std::optional<double>& number) {
    if (number) json.key(name).number(*number);
}

void write_receipt(JsonWriter& json, const metrics::Receipt& receipt) {
    for (uint32_t i = 0; i < metrics::kCauses; ++i) json.key(metrics::kCauseNames[i]).number(receipt.ns[i]);
    json.close();
}

void write_cache_miss(JsonWriter& json, const std::optional<CacheMiss>& miss) {
    if (!miss) return void(json.null());
    json.object();
    json.key("reason").text(miss->reason);
    json.key("position").number(miss->position);
    json.key("text");
    miss->text.empty() ? json.null() : json.text(miss->text);
    json.close();
}

}  // namespace

void write_timings(JsonWriter& json, const metrics::Timings& timings) {
    json.object();
    json.key("cache_n").number(timings.cache_n);
    json.key("prompt_n").number(timings.prompt_n);
    json.key("prompt_ms").number(timings.prompt_ms);
    write_if_known(json, "prompt_per_token_ms", timings.prompt_per_token_ms);
    write_if_known(json, "prompt_per_second", timings.prompt_per_second);
    json.key("predicted_n").number(timings.predicted_n);
    json.key("predicted_ms").number(timings.predicted_ms);
    write_if_known(json, "predicted_per_token_ms", timings.predicted_per_token_ms);
    write_if_known(json, "predicted_per_second", timings.predicted_per_second);
    json.key("draft_n").number(timings.draft_n);
    json.key("draft_n_accepted").number(timings.draft_n_accepted);
    json.close();
}

void write_holders(JsonWriter& json, const std::vector<Holder>& holders) {
    json.array();
    for (const Holder& holder : holders) {
        json.object().key("id").text(holder.id).key("phase").text(holder.phase());
        json.key("ns").number(holder.total()).close();
    }
    json.close();
}

void write_cadans(JsonWriter& json, const RequestFacts& facts, const metrics::Figures& figures) {
    json.object();
    json.key("id").text(facts.id);
    if (!facts.client_request_id.empty()) json.key("client_request_id").text(facts.client_request_id);
    if (!facts.trace_id.empty()) json.key("trace_id").text(facts.trace_id);
    json.key("unix_ms").number(facts.unix_ms);
    json.key("model").text(facts.model);
    json.key("route").text(facts.route);
    json.key("class").text(facts.priority);
    json.key("client");
    facts.client.empty() ? json.null() : json.text(facts.client);
    json.key("stream").boolean(facts.streamed);
    json.key("outcome").text(facts.outcome);
    json.key("seed").number(facts.seed);
    json.key("cold").boolean(figures.cold);
    write_or_null(json.key("ttft_ns"), figures.ttft_ns);
    write_or_null(json.key("prompt_ns"), figures.prompt_ns);
    json.key("queue_ns").number(figures.queue_ns);
    json.key("load_ns").number(figures.load_ns);
    json.key("restore_ns").number(figures.restore_ns);
    json.key("total_ns").number(figures.total_ns);
    write_or_null(json.key("prompt_tokens_per_second"), figures.prompt_tokens_per_second);
    write_or_null(json.key("output_tokens_per_second"), figures.output_tokens_per_second);
    write_or_null(json.key("per_output_token_ns"), figures.per_output_token_ns);
    json.key("receipt_ns").object();
    write_receipt(json, figures.receipt);
    json.key("first_word_ns");
    if (figures.first_word)
        write_receipt(json.object(), *figures.first_word);
    else
        json.null();
    json.key("gap_ns");
    if (figures.gap_ns) {
        json.object();
        json.key("p50").number(figures.gap_ns->p50);
        json.key("p99").number(figures.gap_ns->p99);
        json.key("max").number(figures.gap_ns->max);
        json.close();
    } else {
        json.null();
    }
    json.key("stalls").number(facts.stalls);
    json.key("prompt_tokens").number(figures.prompt_tokens);
    json.key("cached_tokens").number(figures.cached_tokens);
    json.key("computed_tokens").number(figures.computed_tokens);
    json.key("output_tokens").number(figures.output_tokens);
    write_cache_miss(json.key("cache_miss"), facts.cache_miss);
    write_or_null(json.key("remembered_tokens"), facts.remembered_tokens);
    write_holders(json.key("held_up_by"), facts.held_up_by);
    json.key("forecast");
    if (facts.forecast) {
        json.object().key("first_token_ns").number(facts.forecast->first_token);
        json.key("error_ns").number(facts.forecast->error).close();
    } else {
        json.null();
    }
    json.key("preemptions").number(figures.preemptions);
    json.key("recomputed_tokens").number(figures.recomputed_tokens);
    json.key("speculation").object();
    json.key("drafted").number(figures.drafted);
    json.key("accepted").number(figures.accepted);
    json.key("rejected").number(figures.drafted - figures.accepted);
    json.key("wasted_ns").number(figures.receipt[metrics::Cause::speculation_waste]);
    json.key("model").object();
    json.key("drafted").number(figures.modelled);
    json.key("accepted").number(figures.modelled_accepted);
    json.key("drafting_ns").number(figures.drafting_ns).close();
    json.key("held").object();
    for (uint32_t hold = 1; hold < kDraftHolds; hold++)
        json.key(name(static_cast<DraftHold>(hold))).number(figures.draft_holds[hold]);
    json.close();
    json.close();
    json.key("placement").text("local");
    json.key("workers").object();
    json.key("prefill").null();
    json.key("decode").null();
    json.close();
    json.close();
}

history::FinishedRequest finished_request(const RequestFacts& facts, const metrics::Figures& figures) {
    history::FinishedRequest row;
    row.id = facts.id;
    row.unix_ms = facts.unix_ms;
    row.model = facts.model;
    row.outcome = facts.outcome;
    row.priority = facts.priority;
    row.client = facts.client;
    row.cold = figures.cold;
    row.streamed = facts.streamed;
    row.prompt_tokens = figures.prompt_tokens;
    row.cached_tokens = figures.cached_tokens;
    row.computed_tokens = figures.computed_tokens;
    row.output_tokens = figures.output_tokens;
    row.ttft_ns = figures.ttft_ns;
    row.prompt_ns = figures.prompt_ns;
    row.queue_ns = figures.queue_ns;
    row.load_ns = figures.load_ns;
    row.total_ns = figures.total_ns;
    row.prompt_tokens_per_second = figures.prompt_tokens_per_second;
    row.output_tokens_per_second = figures.output_tokens_per_second;
    if (figures.gap_ns) row.gap_max_ns = figures.gap_ns->max;
    row.stalls = facts.stalls;
    row.longest_wait = metrics::name(figures.receipt.longest());
    return row;
}

void write_usage(JsonWriter& json, const metrics::Figures& figures, uint32_t completion_tokens,
                 std::optional<uint32_t> reasoning_tokens) {
    json.object();
    json.key("prompt_tokens").number(figures.prompt_tokens);
    json.key("completion_tokens").number(completion_tokens);
    json.key("total_tokens").number(figures.prompt_tokens + completion_tokens);
    json.key("prompt_tokens_details").object().key("cached_tokens").number(figures.cached_tokens).close();
    json.key("completion_tokens_details").object();
    if (reasoning_tokens) json.key("reasoning_tokens").number(*reasoning_tokens);
    json.key("accepted_prediction_tokens").number(figures.accepted);
    json.key("rejected_prediction_tokens").number(figures.drafted - figures.accepted);
    json.close();
    json.close();
}

}  // namespace cadans::serve
