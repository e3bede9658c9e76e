#include "metrics/metrics.h"

#include "metrics/exposition.h"

namespace cadans::metrics {
namespace {

constexpr Nanos ms(int64_t milliseconds) { return milliseconds * kNanosPerMilli; }

// The bounds of OpenTelemetry's GenAI conventions, and more above them: a home machine may need minutes.
constexpr Nanos kFirstTokenBounds[] = {ms(1),    ms(5),     ms(10),    ms(20),    ms(40),    ms(60),     ms(80),
                                       ms(100),  ms(250),   ms(500),   ms(750),   ms(1000),  ms(2500),   ms(5000),
                                       ms(7500), ms(10000), ms(20000), ms(40000), ms(80000), ms(160000), ms(320000)};
constexpr Nanos kPerTokenBounds[] = {ms(10),  ms(25),  ms(50),  ms(75),   ms(100),  ms(150),  ms(200),   ms(300),
                                     ms(400), ms(500), ms(750), ms(1000), ms(2500), ms(5000), ms(10000), ms(30000)};
constexpr Nanos kRequestBounds[] = {ms(10),    ms(20),    ms(40),     ms(80),    ms(160),   ms(320),
                                    ms(640),   ms(1280),  ms(2560),   ms(5120),  ms(10240), ms(20480),
                                    ms(40960), ms(81920), ms(163840), ms(655360)};

void add(std::atomic<uint64_t>& counter, uint64_t more) { counter.fetch_add(more, std::memory_order_relaxed); }

uint64_t value_of(const std::atomic<uint64_t>& counter) { return counter.load(std::memory_order_relaxed); }

std::string_view model_name(const Now& now, ModelId model) {
    return index(model) < now.model_names.size() ? std::string_view(now.model_names[index(model)]) : "unknown";
}

void write_occupancy(Exposition& page, const Now& now) {
    using Type = Exposition::Type;
    page.family("cadans_sequences_running", Type::gauge, "Sequences that may have rows in a step.");
    page.sample({}, now.occupancy.running);
    page.family("cadans_sequences_waiting", Type::gauge, "Sequences that wait for pages or a place.");
    page.sample({}, now.occupancy.waiting);
    page.family("cadans_page_bytes_used", Type::gauge, "Bytes of key and value pages in use, all models.");
    page.sample({}, now.occupancy.bytes_used);
    page.family("cadans_page_bytes_cached", Type::gauge,
                "Bytes of pages that nobody uses, kept for prompts that begin alike until room is needed.");
    page.sample({}, now.occupancy.bytes_cached);
    page.family("cadans_page_bytes_budget", Type::gauge, "Bytes that all pages together may use.");
    page.sample({}, now.occupancy.bytes_total);

    const auto per_group = [&](std::string_view name, std::string_view help, auto&& value) {
        page.family(name, Type::gauge, help);
        for (const GroupOccupancy& group : now.occupancy.groups) {
            page.sample({{"model", model_name(now, group.model)}, {"group", std::to_string(index(group.group))}},
                        value(group));
        }
    };
    per_group("cadans_pages_used", "Pages in use, per model and page group.",
              [](const GroupOccupancy& group) { return group.used; });
    per_group("cadans_pages_cached", "Pages that nobody uses, kept for prompts that begin alike.",
              [](const GroupOccupancy& group) { return group.cached; });
    per_group("cadans_pages_free",
              "Pages that this group could still take, those cached aside; groups compete for the same bytes.",
              [](const GroupOccupancy& group) { return group.free; });
    per_group("cadans_pages_all", "Pages used, cached and free of this group.",
              [](const GroupOccupancy& group) { return group.used + group.cached + group.free; });
}

}  // namespace

Metrics::Metrics(Nanos stall_limit)
    : stall_limit_(stall_limit),
      queue_(kRequestBounds),
      load_(kRequestBounds),
      prompt_(kFirstTokenBounds),
      ttft_(kFirstTokenBounds),
      total_(kRequestBounds),
      gap_(kPerTokenBounds),
      engine_gap_(kPerTokenBounds),
      per_token_(kPerTokenBounds),
      forecast_late_(kFirstTokenBounds),
      forecast_early_(kFirstTokenBounds) {}

void Metrics::count(const RequestRecord& record, const Figures& figures) {
    add(prompt_computed_, figures.computed_tokens);
    add(prompt_cached_, figures.cached_tokens);
    add(output_, figures.output_tokens);
    add(drafts_accepted_, figures.accepted);
    add(drafts_rejected_, figures.drafted - figures.accepted);
    for (uint32_t hold = 1; hold < kDraftHolds; hold++) add(draft_holds_[hold], figures.draft_holds[hold]);
    add(preemptions_, figures.preemptions);
    add(recomputed_, figures.recomputed_tokens);
    for (uint32_t cause = 0; cause < kCauses; cause++) {
        causes_[cause].fetch_add(figures.receipt.ns[cause], std::memory_order_relaxed);
    }

    const bool cold = figures.cold;
    if (record.queued()) queue_.of(cold).observe(figures.queue_ns);
    if (cold) load_.of(cold).observe(figures.load_ns);
    if (figures.prompt_ns) prompt_.of(cold).observe(*figures.prompt_ns);
    if (figures.ttft_ns) ttft_.of(cold).observe(*figures.ttft_ns);
    if (figures.per_output_token_ns) per_token_.observe(*figures.per_output_token_ns);
    for (const Nanos gap : record.flush_gaps()) {
        gap_.observe(gap);
        if (gap > stall_limit_.load(std::memory_order_relaxed)) add(stalls_, 1);
    }
    for (const Nanos gap : record.token_gaps()) engine_gap_.observe(gap);
    total_.of(cold).observe(figures.total_ns);
    add(requests_[static_cast<uint8_t>(record.outcome())], 1);
}

void Metrics::count_forecast(Nanos error) noexcept {
    (error >= 0 ? forecast_late_ : forecast_early_).observe(error >= 0 ? error : -error);
}

void Metrics::count_refused() noexcept { add(requests_[static_cast<uint8_t>(Outcome::refused)], 1); }

std::string Metrics::exposition(const Now& now) const {
    using Type = Exposition::Type;
    Exposition page;
    const auto counter = [&](std::string_view name, std::string_view help, uint64_t value) {
        page.family(name, Type::counter, help);
        page.sample({}, value);
    };
    const auto spans = [&](std::string_view name, std::string_view help, const Histogram& histogram) {
        page.family(name, Type::histogram, help);
        page.histogram({}, histogram);
    };
    const auto spans_by_start = [&](std::string_view name, std::string_view help, const ColdAndWarm& both) {
        page.family(name, Type::histogram, help);
        page.histogram({{"start", "warm"}}, both.warm);
        page.histogram({{"start", "cold"}}, both.cold);
    };

    page.family("cadans_requests_total", Type::counter, "Requests that have ended, by how.");
    for (uint32_t outcome = 0; outcome < kOutcomes; outcome++) {
        page.sample({{"outcome", kOutcomeNames[outcome]}}, value_of(requests_[outcome]));
    }
    page.family("cadans_prompt_tokens_total", Type::counter,
                "Prompt tokens of ended requests, by where they came from.");
    page.sample({{"source", "computed"}}, value_of(prompt_computed_));
    page.sample({{"source", "cached"}}, value_of(prompt_cached_));
    counter("cadans_output_tokens_total", "Output tokens of ended requests, the end token included.",
            value_of(output_));
    page.family("cadans_draft_tokens_total", Type::counter, "Drafted tokens, by what became of them.");
    page.sample({{"result", "accepted"}}, value_of(drafts_accepted_));
    page.sample({{"result", "rejected"}}, value_of(drafts_rejected_));
    page.family("cadans_draft_holds_total", Type::counter, "Steps of answers with no (more) drafts, by why.");
    for (uint32_t hold = 1; hold < kDraftHolds; hold++)
        page.sample({{"reason", name(static_cast<DraftHold>(hold))}}, value_of(draft_holds_[hold]));
    counter("cadans_preemptions_total", "Times that a sequence lost its pages to another.", value_of(preemptions_));
    counter("cadans_recomputed_tokens_total", "Tokens computed again after a preemption.", value_of(recomputed_));
    counter("cadans_stalls_total", "Gaps between flushes longer than cadans_stall_limit_seconds.", value_of(stalls_));
    page.family("cadans_stall_limit_seconds", Type::gauge, "A longer gap between flushes counts as a stall.");
    page.sample_seconds({}, stall_limit_.load(std::memory_order_relaxed));
    page.family("cadans_gap_promise_seconds", Type::gauge,
                "The longest time that the scheduler now lets pass between two words of a stream; 0: no promise.");
    page.sample_seconds({}, now.occupancy.gap_promise * kNanosPerMicro);
    page.family("cadans_request_cause_seconds_total", Type::counter, "Where the time of ended requests went.");
    for (uint32_t cause = 0; cause < kCauses; cause++) {
        page.sample_seconds({{"cause", kCauseNames[cause]}}, causes_[cause].load(std::memory_order_relaxed));
    }
    counter("cadans_engine_restarts_total", "Times that the serving process was started again.", now.engine_restarts);

    spans_by_start("cadans_queue_seconds", "Wait for the first step, less loading.", queue_);
    spans_by_start("cadans_load_seconds", "Wait for the model to load.", load_);
    spans_by_start("cadans_prompt_seconds", "First step to the end of the prompt.", prompt_);
    spans_by_start("cadans_time_to_first_token_seconds", "Request accepted to first text on the wire.", ttft_);
    spans_by_start("cadans_request_seconds", "Request accepted to its end.", total_);
    spans("cadans_token_gap_seconds", "Gaps between flushes that carry text, of all requests.", gap_);
    spans("cadans_engine_token_gap_seconds", "Gaps between tokens accepted by the engine.", engine_gap_);
    spans("cadans_time_per_output_token_seconds", "Mean time per output token after the first, of each request.",
          per_token_);
    counter("cadans_history_lost_total", "Records of finished requests that could not be kept on disk.",
            now.history_lost);
    page.family("cadans_spans_total", Type::counter, "Spans for OpenTelemetry, by what became of them.");
    page.sample({{"result", "sent"}}, now.spans_sent);
    page.sample({{"result", "lost"}}, now.spans_lost);
    page.family("cadans_forecast_error_seconds", Type::histogram,
                "How far off the first forecast of a first token was, by direction.");
    page.histogram({{"direction", "late"}}, forecast_late_);
    page.histogram({{"direction", "early"}}, forecast_early_);
    write_occupancy(page, now);
    return page.text();
}

}  // namespace cadans::metrics
