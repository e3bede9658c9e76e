// One finished request as it is kept: the figures that people search and sort by, and the whole record as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"
#include "history/gap_counts.h"

namespace cadans::history {

/// Spans are nanoseconds; what cannot be said is absent. Definitions: docs/metrics.md.
struct FinishedRequest {
    std::string id;
    int64_t unix_ms = 0;  ///< when it was accepted, on the wall clock
    std::string model;
    std::string outcome;   ///< stop, length, cancelled, error, refused
    std::string priority;  ///< interactive, normal, background
    std::string client;    ///< who asked, as far as is known; empty: nobody said
    bool cold = false;     ///< it waited for its model to load
    bool streamed = false;

    uint32_t prompt_tokens = 0, cached_tokens = 0, computed_tokens = 0, output_tokens = 0;
    std::optional<Nanos> ttft_ns, prompt_ns;
    Nanos queue_ns = 0, load_ns = 0, total_ns = 0;
    std::optional<double> prompt_tokens_per_second, output_tokens_per_second;
    std::optional<Nanos> gap_max_ns;
    uint32_t stalls = 0;
    std::string longest_wait;  ///< the cause that took most of its time
    GapCounts gaps;            ///< between flushes

    std::string record;  ///< the whole record, one JSON object; empty where only the figures were asked for
};

/// How long it kept its asker waiting: to its first word, or where there is none to its end.
inline Nanos wait_of(const FinishedRequest& request) noexcept { return request.ttft_ns.value_or(request.total_ns); }

}  // namespace cadans::history
