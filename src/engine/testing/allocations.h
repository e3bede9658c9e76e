// Counts what is allocated in a test program.
#pragma once

#include <cstdint>

namespace cadans::engine::testing {

void start_counting_allocations() noexcept;
/// Calls of operator new since start_counting_allocations(), on all threads.
uint64_t stop_counting_allocations() noexcept;

}  // namespace cadans::engine::testing
