// The numbers of a finished request as every dialect's clients read them.
#pragma once

#include <optional>
#include <string>

#include "metrics/figures.h"
#include "serve/json_writer.h"

namespace cadans::serve {

/// The `timings` object: a rate without a divisor is left out.
void write_timings(JsonWriter& json, const metrics::Timings& timings);

/// Why the cached part of a prompt is not longer.
struct CacheMiss {
    const char* reason = "";  ///< name(ReuseEnd)
    uint32_t position = 0;    ///< of the first prompt token that was not found
    std::string text;         ///< the piece of the prompt there
};

/// What the `cadans` object tells beside the figures.
struct RequestFacts {
    std::string id;
    std::string client_request_id;  ///< empty: none was sent
    std::string model;
    uint64_t seed = 0;
    const char* outcome = "";
    std::optional<CacheMiss> cache_miss;  ///< absent: all that can be was reused, or nothing ran
};

/// The `cadans` object: what has no value is null.
void write_cadans(JsonWriter& json, const RequestFacts& facts, const metrics::Figures& figures);

/// OpenAI's `usage` object.
void write_usage(JsonWriter& json, const metrics::Figures& figures, uint32_t completion_tokens,
                 std::optional<uint32_t> reasoning_tokens);

}  // namespace cadans::serve
