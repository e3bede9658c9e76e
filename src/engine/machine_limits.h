// What this machine can do at most, measured beside a benchmark: the denominators of its shares.
#pragma once

#include "base/thread_pool.h"

namespace cadans::engine {

/// Bytes a second that all threads of the pool together read from memory: the median of a few passes over a block
/// far larger than the caches. Takes about a second and 512 MiB.
double measure_read_bandwidth(ThreadPool& pool);

}  // namespace cadans::engine
