// Every number that a person sees about one request, each a formula over its record.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/units.h"
#include "metrics/receipt.h"
#include "metrics/request_record.h"

namespace cadans::metrics {

/// What cannot be said is absent: null in JSON, never 0, infinite or NaN.
struct GapFigures {
    Nanos p50 = 0, p99 = 0, max = 0;
};

/// The numbers of the `cadans` object. "_ns" spans are whole nanoseconds.
struct Figures {
    bool cold = false;               ///< it waited for its model to load
    std::optional<Nanos> ttft_ns;    ///< first flush - accepted; absent where nothing was streamed
    std::optional<Nanos> prompt_ns;  ///< prefill_end - first_scheduled
    Nanos queue_ns = 0;
    Nanos load_ns = 0;
    Nanos restore_ns = 0;
    Nanos total_ns = 0;                              ///< equals receipt.total()
    std::optional<double> prompt_tokens_per_second;  ///< computed ones only
    std::optional<double> output_tokens_per_second;  ///< after the first flush, as felt
    std::optional<GapFigures> gap_ns;                ///< between flushes that carry text
    std::optional<Nanos> per_output_token_ns;        ///< the request's mean; never called a gap
    uint32_t prompt_tokens = 0;                      ///< as the client sent them; cached + computed once all is read
    uint32_t cached_tokens = 0;
    uint32_t computed_tokens = 0;  ///< fewer than the rest of the prompt only if it ended early
    uint32_t output_tokens = 0;
    uint32_t drafted = 0, accepted = 0;
    uint32_t modelled = 0, modelled_accepted = 0;     ///< of these, by a draft model
    Nanos drafting_ns = 0;                            ///< its part of that model's time
    std::array<uint32_t, kDraftHolds> draft_holds{};  ///< RequestRecord::draft_holds()
    uint32_t preemptions = 0, recomputed_tokens = 0;
    Receipt receipt;
    std::optional<Receipt> first_word;  ///< the same, up to the first flush: sums to ttft_ns
};

/// The `timings` object in llama.cpp's names: engine times, the same streamed or not.
struct Timings {
    uint32_t cache_n = 0, prompt_n = 0;
    double prompt_ms = 0.0;
    std::optional<double> prompt_per_token_ms, prompt_per_second;
    uint32_t predicted_n = 0;
    double predicted_ms = 0.0;
    std::optional<double> predicted_per_token_ms, predicted_per_second;
    uint32_t draft_n = 0, draft_n_accepted = 0;
};

/// Ollama's fields, nanoseconds and counts.
struct OllamaDurations {
    Nanos total_duration = 0;
    Nanos load_duration = 0;                ///< 0 when warm
    uint32_t prompt_eval_count = 0;         ///< the whole prompt
    uint32_t prompt_eval_cached_count = 0;  ///< of it, not computed
    Nanos prompt_eval_duration = 0;
    uint32_t eval_count = 0;
    Nanos eval_duration = 0;
};

/// Pure functions of a record that is done.
Figures figures_of(const RequestRecord& record, const RowCost& cost = cost_by_rows);
Timings timings_of(const RequestRecord& record);
OllamaDurations ollama_durations_of(const RequestRecord& record);

}  // namespace cadans::metrics
