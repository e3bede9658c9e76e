#include "serve/record/history_json.h"

namespace cadans::serve {

namespace {

using history::Spread;

template <class Number>
void number_or_null(JsonWriter& json, const char* key, const std::optional<Number>& number) {
    json.key(key);
    number ? json.number(*number) : json.null();
}

void write_spread(JsonWriter& json, const char* key, const std::optional<Spread>& spread) {
    json.key(key);
    if (!spread) return void(json.null());
    json.object().key("count").number(spread->count).key("p50").number(spread->p50).key("p90").number(spread->p90);
    json.key("p99").number(spread->p99).key("max").number(spread->max).close();
}

void write_figures(JsonWriter& json, const history::Figures& figures) {
    json.object().key("count").number(figures.count);
    write_spread(json, "prompt_ns", figures.prompt_ns);
    write_spread(json, "ttft_ns", figures.ttft_ns);
    write_spread(json, "gap_ns", figures.gap_ns);
    write_spread(json, "output_tokens_per_second", figures.output_tokens_per_second);
    write_spread(json, "queue_ns", figures.queue_ns);
    write_spread(json, "total_ns", figures.total_ns);
    json.close();
}

void write_bucket(JsonWriter& json, const history::Bucket& bucket) {
    json.object().key("from_ms").number(bucket.from_ms).key("to_ms").number(bucket.to_ms);
    json.key("count").number(bucket.count);
    write_figures(json.key("warm"), bucket.figures.warm);
    write_figures(json.key("cold"), bucket.figures.cold);
    json.key("outcomes").object();
    for (size_t i = 0; i < history::kOutcomes.size(); ++i) json.key(history::kOutcomes[i]).number(bucket.outcomes[i]);
    json.close();
    json.key("computed_tokens").number(bucket.computed_tokens).key("cached_tokens").number(bucket.cached_tokens);
    json.key("output_tokens").number(bucket.output_tokens).key("stalls").number(bucket.stalls);
    json.close();
}

void write_length_figures(JsonWriter& json, const history::LengthFigures& figures) {
    json.object().key("count").number(figures.count);
    write_spread(json, "ttft_ns", figures.ttft_ns);
    write_spread(json, "prompt_tokens_per_second", figures.prompt_tokens_per_second);
    json.close();
}

}  // namespace

void write_summary(JsonWriter& json, const history::FinishedRequest& row) {
    json.object().key("id").text(row.id).key("unix_ms").number(row.unix_ms).key("model").text(row.model);
    json.key("outcome").text(row.outcome).key("class").text(row.priority).key("client");
    row.client.empty() ? json.null() : json.text(row.client);
    json.key("cold").boolean(row.cold).key("stream").boolean(row.streamed);
    json.key("prompt_tokens").number(row.prompt_tokens).key("cached_tokens").number(row.cached_tokens);
    json.key("computed_tokens").number(row.computed_tokens).key("output_tokens").number(row.output_tokens);
    number_or_null(json, "ttft_ns", row.ttft_ns);
    number_or_null(json, "prompt_ns", row.prompt_ns);
    json.key("queue_ns").number(row.queue_ns).key("load_ns").number(row.load_ns).key("total_ns").number(row.total_ns);
    number_or_null(json, "gap_max_ns", row.gap_max_ns);
    json.key("stalls").number(row.stalls);
    number_or_null(json, "output_tokens_per_second", row.output_tokens_per_second);
    json.key("longest_wait").text(row.longest_wait);
    json.close();
}

std::string history_json(const HistoryQuestion& question, std::span<const history::FinishedRequest> rows,
                         std::span<const history::FinishedRequest* const> first) {
    std::string out;
    JsonWriter json(out);
    json.object().key("from_ms").number(question.from_ms).key("to_ms").number(question.to_ms);
    json.key("count").number(uint64_t{rows.size()}).key("store").text(question.on_disk ? "disk" : "memory");
    number_or_null(json, "kept_since_ms", question.kept_since_ms);
    const history::ByStart figures = history::figures_of(rows);
    json.key("figures").object();
    write_figures(json.key("warm"), figures.warm);
    write_figures(json.key("cold"), figures.cold);
    json.close();
    json.key("buckets").array();
    for (const history::Bucket& bucket : history::buckets_of(rows, question.from_ms, question.to_ms, question.buckets))
        write_bucket(json, bucket);
    json.close();
    json.key("lengths").array();
    for (const history::LengthClass& each : history::lengths_of(rows)) {
        json.object().key("from_tokens").number(each.from_tokens).key("to_tokens").number(each.to_tokens);
        write_length_figures(json.key("warm"), each.warm);
        write_length_figures(json.key("cold"), each.cold);
        write_length_figures(json.key("cached"), each.cached);
        json.close();
    }
    json.close();
    const history::Savings savings = history::savings_of(rows);
    json.key("savings").object().key("cached_tokens").number(savings.cached_tokens);
    json.key("computed_tokens").number(savings.computed_tokens);
    number_or_null(json, "saved_ns", savings.saved_ns);
    json.close();
    json.key("records").array();
    for (const history::FinishedRequest* row : first) write_summary(json, *row);
    json.close();
    json.close();
    return out;
}

}  // namespace cadans::serve
