// What this machine can do at most, measured beside a benchmark: the denominators of its shares.
#pragma once

#include <cstddef>

#include "base/thread_pool.h"

namespace cadans::engine {

/// Bytes a second that all threads of the pool together read from memory: the median of a few passes over a block
/// far larger than the caches. Takes about a second with 512 MiB.
double measure_read_bandwidth(ThreadPool& pool, size_t block_bytes = size_t{512} << 20);

}  // namespace cadans::engine
