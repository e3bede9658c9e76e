// What many finished requests say together: percentiles over time and by prompt length, and what the cache saved.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "history/finished_request.h"

namespace cadans::history {

/// By nearest rank, of at least one value.
struct Spread {
    uint64_t count = 0;
    double p50 = 0, p90 = 0, p99 = 0, max = 0;
};

/// Nothing where there are no values.
std::optional<Spread> spread_of(std::vector<double> values);
std::optional<Spread> spread_of(const GapCounts& gaps);

/// The headline figures of a set of requests, each by itself and never merged into one.
struct Figures {
    uint64_t count = 0;
    std::optional<Spread> prompt_ns, ttft_ns, gap_ns, output_tokens_per_second, queue_ns, total_ns;
};

/// Those that waited for their model are a set of their own.
struct ByStart {
    Figures warm, cold;
};

inline constexpr std::array<const char*, 5> kOutcomes = {"stop", "length", "cancelled", "error", "refused"};

struct Bucket {
    int64_t from_ms = 0, to_ms = 0;
    uint64_t count = 0;
    ByStart figures;
    std::array<uint64_t, kOutcomes.size()> outcomes{};
    uint64_t computed_tokens = 0, cached_tokens = 0, output_tokens = 0, stalls = 0;
};

struct LengthFigures {
    uint64_t count = 0;
    std::optional<Spread> ttft_ns, prompt_tokens_per_second;
};

/// Prompts of [from_tokens, to_tokens] tokens.
struct LengthClass {
    uint32_t from_tokens = 0, to_tokens = 0;
    LengthFigures warm, cold;
    LengthFigures cached;  ///< warm ones of which at least half the prompt was found in the cache; not in `warm`
};

struct Savings {
    uint64_t cached_tokens = 0, computed_tokens = 0;
    std::optional<Nanos>
        saved_ns;  ///< cached tokens times the median time of a computed one, of prompts that were read
};

enum class Order : uint8_t { newest, slowest };

/// Of rows that are oldest first: the first `most` in that order, by the wait for the first word where they are to be
/// slowest. Cost: O(n log n).
std::vector<const FinishedRequest*> first_rows(std::span<const FinishedRequest> rows, Order order, size_t most);

/// Of rows in any order. Cost: O(n log n).
ByStart figures_of(std::span<const FinishedRequest> rows);

/// `count` equal parts of [from_ms, to_ms), empty ones too; rows outside are left out. At least one part.
std::vector<Bucket> buckets_of(std::span<const FinishedRequest> rows, int64_t from_ms, int64_t to_ms, uint32_t count);

/// Classes double in length: 1, 2 to 3, 4 to 7, …; only those that somebody asked in. Requests without prompt are left
/// out.
std::vector<LengthClass> lengths_of(std::span<const FinishedRequest> rows);

Savings savings_of(std::span<const FinishedRequest> rows);

}  // namespace cadans::history
