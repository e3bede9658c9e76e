#include "sched/count_allocations.h"

#include <cstdlib>
#include <new>

namespace {
thread_local uint64_t allocations = 0;
}  // namespace

void* operator new(size_t size) {
    allocations++;
    if (void* memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace cadans {

uint64_t allocations_of_this_thread() noexcept { return allocations; }

}  // namespace cadans
