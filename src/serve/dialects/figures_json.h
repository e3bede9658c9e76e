// The numbers of a finished request as every dialect's clients read them.
#pragma once

#include <optional>
#include <string>

#include "history/finished_request.h"
#include "metrics/figures.h"
#include "serve/dialects/json_writer.h"
#include "serve/record/live_board.h"

namespace cadans::serve {

/// The `timings` object: a rate without a divisor is left out.
void write_timings(JsonWriter& json, const metrics::Timings& timings);

/// Why the cached part of a prompt is not longer.
struct CacheMiss {
    const char* reason = "";  ///< name(ReuseEnd)
    uint32_t position = 0;    ///< of the first prompt token that was not found
    std::string text;         ///< the piece of the prompt there; empty: not told
};

/// What was said of a first token, as soon as something was, and how late it came.
struct FirstWordForecast {
    Nanos first_token = 0;  ///< from `accepted`
    Nanos error = 0;        ///< positive: it came later
};

/// `[{"id", "phase", "ns"}]`.
void write_holders(JsonWriter& json, const std::vector<Holder>& holders);

/// What the `cadans` object tells beside the figures.
struct RequestFacts {
    std::string id;
    std::string client_request_id;  ///< empty: none was sent
    int64_t unix_ms = 0;            ///< when it was accepted, on the wall clock
    std::string model;
    const char* route = "";     ///< name(AnswerForm)
    const char* priority = "";  ///< name(Priority)
    std::string client;         ///< who asked; empty: nobody said
    bool streamed = false;
    uint64_t seed = 0;
    const char* outcome = "";
    uint32_t stalls = 0;                        ///< gaps over the limit
    std::optional<FirstWordForecast> forecast;  ///< of its first token
    std::vector<Holder> held_up_by = {};        ///< whose steps it waited for, most first
    std::optional<uint32_t> remembered_tokens;  ///< of the prompt, found by the next one that begins alike
    std::string trace_id = {};                  ///< of the trace that it is part of; empty: none
    std::optional<CacheMiss> cache_miss;        ///< absent: all that can be was reused, or nothing ran
};

/// The `cadans` object: what has no value is null. It holds no word of the prompt but the miss's `text`.
void write_cadans(JsonWriter& json, const RequestFacts& facts, const metrics::Figures& figures);

/// The row that is kept of it; gaps and record are still to be filled in.
history::FinishedRequest finished_request(const RequestFacts& facts, const metrics::Figures& figures);

/// OpenAI's `usage` object.
void write_usage(JsonWriter& json, const metrics::Figures& figures, uint32_t completion_tokens,
                 std::optional<uint32_t> reasoning_tokens);

}  // namespace cadans::serve
