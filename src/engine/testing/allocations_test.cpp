#include "engine/testing/allocations.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>

namespace {

std::atomic<bool> counting{false};
std::atomic<uint64_t> allocations{0};

}  // namespace

[[gnu::noinline]] void* operator new(size_t n) {
    if (counting) allocations++;
    if (void* p = std::malloc(n)) return p;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace cadans::engine::testing {

void start_counting_allocations() noexcept {
    allocations = 0;
    counting = true;
}

uint64_t stop_counting_allocations() noexcept {
    counting = false;
    return allocations;
}

TEST(allocations, are_counted_in_this_program) {
    start_counting_allocations();
    const auto one = std::make_unique<int>(1);
    EXPECT_EQ(stop_counting_allocations(), 1u) << *one;
}

}  // namespace cadans::engine::testing
