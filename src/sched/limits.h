// How large a step may be, and how many sequences may share the machine.
#pragma once

#include <cstdint>

namespace cadans::sched {

/// max_running < max_rows, so that every running sequence can have its decode row and a prompt still moves.
struct SchedulerLimits {
    uint32_t max_rows = 256;       ///< tokens computed in one step, all items together
    uint32_t max_running = 64;     ///< sequences that hold pages; also the most items of a step
    uint32_t prefill_chunk = 256;  ///< what the policies take as the usual share of prompt tokens in a step
};

}  // namespace cadans::sched
