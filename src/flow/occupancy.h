// How full the house is: who runs, who waits, and which pages are whose.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "flow/forecast.h"

namespace cadans {

/// Pages of one group of one model. `free` is what could be leased now under the common byte budget, so
/// the free pages of two groups compete: they do not add up.
struct GroupOccupancy {
    ModelId model{};
    GroupId group{};
    uint64_t bytes_per_page = 0;
    uint32_t used = 0;  ///< held by sequences
    uint32_t free = 0;
    uint32_t cached = 0;  ///< held by nobody, kept for the next prompt that begins alike; given up when needed
};

/// A copy taken between two steps. Plain values.
struct Occupancy {
    uint32_t running = 0;
    uint32_t waiting = 0;
    uint64_t bytes_used = 0;
    uint64_t bytes_total = 0;
    uint64_t bytes_cached = 0;  ///< beside bytes_used
    std::vector<GroupOccupancy> groups = {};
    Outlook outlook = {};    ///< some 100 ms old while anybody is served
    Micros gap_promise = 0;  ///< longest time between two words of a stream that is promised now; 0: no promise
};

}  // namespace cadans
