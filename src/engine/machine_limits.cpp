#include "engine/machine_limits.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "engine/work_share.h"

namespace cadans::engine {
namespace {

constexpr int kPasses = 7;

/// Sums words in eight independent chains, so that only memory limits it.
uint64_t sum(const uint64_t* words, size_t n) {
    uint64_t sums[8] = {};
    for (size_t i = 0; i + 8 <= n; i += 8)
        for (size_t j = 0; j < 8; j++) sums[j] += words[i + j];
    uint64_t total = 0;
    for (const uint64_t part : sums) total += part;
    return total;
}

}  // namespace

double measure_read_bandwidth(ThreadPool& pool, size_t block_bytes) {
    void* block = ::mmap(nullptr, block_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(block != MAP_FAILED, "a block for measuring memory");
    ::madvise(block, block_bytes, MADV_HUGEPAGE);
    auto* words = static_cast<uint64_t*>(block);
    const auto count = static_cast<uint32_t>(block_bytes / sizeof(uint64_t));
    std::vector<uint64_t> sums(pool.threads() * 8);
    pool.run([&](uint32_t t, uint32_t n) {
        const Part mine = Part::of(count, t, n, 512);
        std::fill(words + mine.begin, words + mine.end, t + 1);
    });
    std::vector<double> rates;
    for (int pass = 0; pass < kPasses; pass++) {
        const Nanos begin = steady_now();
        pool.run([&](uint32_t t, uint32_t n) {
            const Part mine = Part::of(count, t, n, 512);
            sums[t * 8] = sum(words + mine.begin, mine.end - mine.begin);
        });
        rates.push_back(static_cast<double>(block_bytes) * 1e9 / static_cast<double>(steady_now() - begin));
    }
    check(sums[0] != 0, "the block was read");
    ::munmap(block, block_bytes);
    std::ranges::sort(rates);
    return rates[rates.size() / 2];
}

}  // namespace cadans::engine
