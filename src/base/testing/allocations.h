// Counts what a test program allocates. Linked into tests alone: cadans_allocations replaces operator new.
#pragma once

#include <cstdint>

namespace cadans {

/// Calls of operator new since the program began: of the calling thread, and of all.
uint64_t allocations_of_this_thread() noexcept;
uint64_t allocations_of_all_threads() noexcept;

}  // namespace cadans
