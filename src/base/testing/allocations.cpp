#include "base/testing/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<uint64_t> of_all{0};
thread_local uint64_t of_this = 0;

}  // namespace

// Not inlined: GCC would see malloc behind new, and free behind delete, and warn of a mismatch.
[[gnu::noinline]] void* operator new(size_t n) {
    of_all.fetch_add(1, std::memory_order_relaxed);
    of_this++;
    if (void* memory = std::malloc(n)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace cadans {

uint64_t allocations_of_this_thread() noexcept { return of_this; }
uint64_t allocations_of_all_threads() noexcept { return of_all.load(std::memory_order_relaxed); }

}  // namespace cadans
