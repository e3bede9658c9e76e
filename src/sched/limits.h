// How large a step may be, how long it should take, and how many sequences may share the machine.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace cadans::sched {

/// max_running < max_rows, so that every running sequence can have its decode row and a prompt still moves.
struct SchedulerLimits {
    uint32_t max_rows = 256;       ///< tokens computed in one step, all items together
    uint32_t max_running = 64;     ///< sequences that hold pages; also the most items of a step
    uint32_t prefill_chunk = 256;  ///< prompt tokens in a step of the static-chunk policy
    Micros gap = 200'000;          ///< the longest time that the cadence policy lets pass between two words of a stream
};

/// Steps beside streams are planned to take the gap / (1 + margin / 1024), for a machine is not steady: at first, and
/// within what bounds the margin then follows the machine (MachineTime).
inline constexpr uint32_t kUsualMargin = 64, kLeastMargin = 32, kMostMargin = 128;

}  // namespace cadans::sched
