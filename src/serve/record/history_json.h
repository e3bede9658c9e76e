// Finished requests together, as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "history/summary.h"
#include "serve/dialects/json_writer.h"

namespace cadans::serve {

/// One row as lists show it.
void write_summary(JsonWriter& json, const history::FinishedRequest& request);

/// What GET /cadans/v1/history was asked for, and where its rows come from.
struct HistoryQuestion {
    int64_t from_ms = 0, to_ms = 0;
    uint32_t buckets = 1;
    bool on_disk = false;
    std::optional<int64_t> kept_since_ms = {};
};

/// The answer: `rows` of the span, and `first` to be listed. Cost: O(n log n); some milliseconds for 10,000 rows.
std::string history_json(const HistoryQuestion& question, std::span<const history::FinishedRequest> rows,
                         std::span<const history::FinishedRequest* const> first);

}  // namespace cadans::serve
