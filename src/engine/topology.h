// How many threads this process should compute with.
#pragma once

#include <cstdint>

namespace cadans::engine {

/// Physical cores that this process may use: siblings of one core count once, the affinity mask and a control
/// group's processor quota are respected. At least 1. Source: hwloc, cgroup v2 cpu.max and v1 cfs_quota.
uint32_t usable_cores();

}  // namespace cadans::engine
