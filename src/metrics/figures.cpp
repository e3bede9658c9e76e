#include "metrics/figures.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace cadans::metrics {
namespace {

Nanos sum(const std::vector<Interval>& spans) {
    Nanos total = 0;
    for (const Interval& span : spans) total += span.end - span.begin;
    return total;
}

/// How much of [begin, end) the spans of all three lists cover, each instant once.
Nanos covered(const RequestRecord& record, Nanos begin, Nanos end) {
    std::vector<Interval> spans = record.loads();
    spans.insert(spans.end(), record.restores().begin(), record.restores().end());
    spans.insert(spans.end(), record.transfers().begin(), record.transfers().end());
    std::sort(spans.begin(), spans.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    Nanos total = 0, from = begin;
    for (const Interval& span : spans) {
        const Nanos until = std::min(span.end, end);
        from = std::max(from, span.begin);
        if (from >= until) continue;
        total += until - from;
        from = until;
    }
    return total;
}

Nanos queue_time(const RequestRecord& record) {
    if (!record.queued()) return 0;
    const Nanos end = record.first_scheduled().value_or(*record.done());
    return std::max<Nanos>(0, end - *record.queued() - covered(record, *record.queued(), end));
}

/// Nearest rank: the smallest gap that at least that share of all gaps does not exceed.
Nanos percentile(const std::vector<Nanos>& ascending, size_t percent) {
    const size_t rank = (ascending.size() * percent + 99) / 100;
    return ascending[std::max<size_t>(rank, 1) - 1];
}

std::optional<GapFigures> gap_figures(std::vector<Nanos> gaps) {
    if (gaps.empty()) return std::nullopt;
    std::sort(gaps.begin(), gaps.end());
    return GapFigures{percentile(gaps, 50), percentile(gaps, 99), gaps.back()};
}

/// None where nothing was done, or in no time: a rate is never infinite or NaN.
std::optional<double> rate(uint64_t tokens, Nanos span) {
    if (tokens == 0 || span <= 0) return std::nullopt;
    return static_cast<double>(tokens) * 1e9 / static_cast<double>(span);
}

double milliseconds(Nanos span) { return static_cast<double>(span) / 1e6; }

/// What several formulas need, over all streams of the request.
struct Sums {
    uint32_t prompt = 0, cached = 0, computed = 0, output = 0, after_first_flush = 0;
    uint32_t after_first_token = 0;  ///< tokens that had one before them in their own stream
    std::optional<Nanos> prefill_end, first_token, last_token, first_flush, last_flush;
    bool whole_prompt = true;  ///< every stream has computed its prompt
};

void earliest(std::optional<Nanos>& of_all, const std::optional<Nanos>& one) {
    if (one) of_all = std::min(of_all.value_or(*one), *one);
}

void latest(std::optional<Nanos>& of_all, const std::optional<Nanos>& one) {
    if (one) of_all = std::max(of_all.value_or(*one), *one);
}

Sums sums_of(const RequestRecord& record) {
    check(record.done().has_value(), "figures are of a request that is done");
    Sums sums;
    for (const RequestRecord::Stream& stream : record.streams()) {
        if (stream.counts_prompt) {
            sums.prompt += stream.prompt_tokens;
            sums.cached += stream.cached;
            sums.computed += stream.computed;
        }
        sums.output += stream.output_tokens;
        sums.after_first_token += stream.output_tokens > 0 ? stream.output_tokens - 1 : 0;
        sums.after_first_flush += stream.tokens_after_first_flush;
        sums.whole_prompt = sums.whole_prompt && stream.prefill_end.has_value();
        latest(sums.prefill_end, stream.prefill_end);
        earliest(sums.first_token, stream.first_token);
        latest(sums.last_token, stream.last_token);
        earliest(sums.first_flush, stream.first_flush);
        latest(sums.last_flush, stream.last_flush);
    }
    return sums;
}

std::optional<Nanos> prompt_time(const RequestRecord& record, const Sums& sums) {
    if (!record.first_scheduled() || !sums.prefill_end || !sums.whole_prompt) return std::nullopt;
    return *sums.prefill_end - *record.first_scheduled();
}

/// token(n) - prefill_end: how long the answer took the engine; 0 without an answer.
Nanos answer_time(const Sums& sums) {
    if (!sums.last_token || !sums.prefill_end) return 0;
    return std::max<Nanos>(0, *sums.last_token - *sums.prefill_end);
}

}  // namespace

Figures figures_of(const RequestRecord& record, const RowCost& cost) {
    const Sums sums = sums_of(record);
    Figures figures;
    figures.receipt = make_receipt(record, cost);
    figures.cold = !record.loads().empty();
    figures.prompt_ns = prompt_time(record, sums);
    figures.queue_ns = queue_time(record);
    figures.load_ns = sum(record.loads());
    figures.restore_ns = sum(record.restores());
    figures.total_ns = *record.done() - record.accepted();
    figures.prompt_tokens = sums.prompt;
    figures.cached_tokens = sums.cached;
    figures.computed_tokens = sums.computed;
    figures.output_tokens = sums.output;
    figures.drafted = record.drafted();
    figures.accepted = record.drafted() - std::min(record.rejected(), record.drafted());
    figures.modelled = record.modelled();
    figures.modelled_accepted = record.modelled() - std::min(record.modelled_rejected(), record.modelled());
    figures.drafting_ns = record.drafting();
    figures.draft_holds = record.draft_holds();
    figures.preemptions = record.preemption_count();
    figures.recomputed_tokens = record.recomputed();
    figures.gap_ns = gap_figures(record.flush_gaps());
    if (figures.prompt_ns) figures.prompt_tokens_per_second = rate(figures.computed_tokens, *figures.prompt_ns);
    if (sums.first_flush) {
        figures.ttft_ns = *sums.first_flush - record.accepted();
        figures.first_word = make_receipt_until(record, *sums.first_flush, cost);
        figures.output_tokens_per_second = rate(sums.after_first_flush, *sums.last_flush - *sums.first_flush);
    }
    if (sums.after_first_token > 0) {
        Nanos decoding = 0;
        for (const Nanos gap : record.token_gaps()) decoding += gap;
        figures.per_output_token_ns = decoding / sums.after_first_token;
    }
    return figures;
}

Timings timings_of(const RequestRecord& record) {
    const Sums sums = sums_of(record);
    Timings timings;
    timings.cache_n = sums.cached;
    timings.prompt_n = sums.computed;
    const Nanos prompt = prompt_time(record, sums).value_or(0);
    timings.prompt_ms = milliseconds(prompt);
    timings.prompt_per_second = rate(timings.prompt_n, prompt);
    if (timings.prompt_n > 0) timings.prompt_per_token_ms = timings.prompt_ms / timings.prompt_n;
    timings.predicted_n = sums.output;
    timings.predicted_ms = milliseconds(answer_time(sums));
    if (sums.output > 0) timings.predicted_per_token_ms = timings.predicted_ms / sums.output;
    if (sums.first_token)
        timings.predicted_per_second = rate(sums.after_first_token, *sums.last_token - *sums.first_token);
    timings.draft_n = record.drafted();
    timings.draft_n_accepted = record.drafted() - std::min(record.rejected(), record.drafted());
    return timings;
}

OllamaDurations ollama_durations_of(const RequestRecord& record) {
    const Sums sums = sums_of(record);
    OllamaDurations durations;
    durations.total_duration = *record.done() - record.accepted();
    durations.load_duration = sum(record.loads());
    durations.prompt_eval_count = sums.prompt;
    durations.prompt_eval_cached_count = sums.cached;
    durations.prompt_eval_duration = prompt_time(record, sums).value_or(0);
    durations.eval_count = sums.output;
    durations.eval_duration = answer_time(sums);
    return durations;
}

}  // namespace cadans::metrics
