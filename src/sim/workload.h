// Who asks, when, and for how much: lengths and instants, no text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "flow/request.h"
#include "sched/admission.h"

namespace cadans::sim {

/// Token ids of a simulated prompt are names without meaning, drawn from so many.
inline constexpr uint32_t kVocabulary = 1U << 30;

/// No workload lasts longer, some thirty years: its nanoseconds stay far within 64 bits.
inline constexpr double kLongestSeconds = 1e9;

/// One request of one answer.
struct Arrival {
    Nanos at = 0;  ///< since the workload's begin
    uint32_t prompt = 1;
    uint32_t output = 1;  ///< tokens that it will turn out to have
    Priority priority = Priority::normal;
    uint64_t scope = 0;
    std::vector<uint64_t> blocks = {};  ///< equal from the first on: the same prompt so far; empty: like no other
    std::vector<TokenId> tokens = {};   ///< the prompt itself where it is known (a server's record)
};

/// Arrivals ascend. A value.
struct Workload {
    std::string name;
    std::vector<Arrival> arrivals;
    uint32_t block_tokens = 512;             ///< prompt tokens that one entry of Arrival::blocks stands for
    bool timed = true;                       ///< false: lengths only, every `at` is 0
    std::optional<sched::House> house = {};  ///< where it was recorded, for one that a server recorded

    /// From the first arrival to the last. 0 with fewer than two.
    Nanos span() const noexcept;

    /// Mean requests a second: arrivals after the first over span(). 0 where that says nothing.
    double rate() const noexcept;

    /// Stretches or squeezes time, never lengths, so that rate() is `rate` (more than 0). A workload without
    /// times gets Poisson arrivals at that rate, from `seed`.
    void scale_to(double rate, uint64_t seed);

    /// Keeps the first `count`.
    void cut(size_t count);

    /// The prompt's ids: a pure function of the workload's row.
    std::vector<TokenId> prompt_of(size_t row) const;
};

}  // namespace cadans::sim
