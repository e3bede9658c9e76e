// What happens now, as JSON: requests, the machine's seconds, and steps.
#pragma once

#include <optional>

#include "flow/occupancy.h"
#include "serve/dialects/json_writer.h"
#include "serve/models/machine_card.h"
#include "serve/record/live_board.h"

namespace cadans::serve {

/// All that a snapshot is made of beside the board.
struct Snapshot {
    Nanos at = 0;
    int64_t unix_ms = 0;
    bool ready = false, draining = false;
    Occupancy occupancy;
    Nanos stall_limit = 0;
    std::optional<MachineLimits> limits;
    int64_t seconds_from = 0;  ///< the first second told; the last is Seconds::newest_told(at)
};

/// The answer of GET /cadans/v1/now. Forgets requests that ended a while ago.
void write_now(JsonWriter& json, LiveBoard& board, const Snapshot& snapshot);

/// The steps after number `after`, at most `most`. Returns the number of the newest; writes nothing where there are
/// none.
uint64_t write_steps(std::string& out, const LiveBoard& board, uint64_t after, size_t most);

}  // namespace cadans::serve
