// A workload played on a server: every request leaves at its time, whatever became of the others.
#pragma once

#include <functional>
#include <vector>

#include "load/stop_watch.h"
#include "sim/workload.h"

namespace cadans::load {

struct LoadOptions {
    uint64_t seed = 1;
    uint32_t most_at_once = 512;  ///< requests beyond are not sent, and told as failed
    uint32_t most_output = 0;     ///< no answer is asked to be longer; 0: as the workload says
    bool realtime = false;        ///< stop-watches go before other work of this machine, where that is permitted
};

struct Played {
    std::vector<Answer> answers;  ///< by row
    std::vector<Nanos> late;      ///< how long after its time each was sent
    Nanos span = 0;               ///< from the first sent to the last end
    bool realtime = false;        ///< stop-watches did go before other work
};

/// Blocks until every answer has come or failed. `on_end` hears of how many that is, on this thread.
Played run_load(const Peer& peer, const sim::Workload& workload, const LoadOptions& options,
                const std::function<void(size_t ended)>& on_end);

}  // namespace cadans::load
