// For tests: how often this thread has asked for memory. The counting operators are in a test file.
#pragma once

#include <cstdint>

namespace cadans {

uint64_t allocations_of_this_thread() noexcept;

}  // namespace cadans
