// What the doors know of the machine and of how the server was set up, to show it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"

namespace cadans::serve {

/// Measured on this machine: the denominators of shares.
struct MachineLimits {
    double operations_per_second = 0, bytes_per_second = 0;
};

/// Immutable once handed to the server. Everything may be left empty.
struct MachineCard {
    std::string version, cpu, isa, policy;
    uint32_t threads = 0;
    std::optional<MachineLimits> limits = {};
    Nanos gap = 0;  ///< that the scheduler aims at; 0: it promises nothing
    uint64_t page_bytes = 0;
    uint32_t max_running = 0;
    bool prefix_cache = false;
};

}  // namespace cadans::serve
