// What the machine did in each of the last seconds: how busy, how much work, which gaps people felt.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/units.h"
#include "flow/model_work.h"
#include "flow/phase.h"

namespace cadans::serve {

/// Steps that hold prompt rows, and steps of answers only: the two points of a roofline.
struct StepsOfAKind {
    Nanos ns = 0;
    Work work;
};

struct Second {
    int64_t number = 0;  ///< since the clock's zero: it began at number * kNanosPerSecond
    uint32_t steps = 0;  ///< that ended in it
    uint64_t prefill_tokens = 0, output_tokens = 0;
    StepsOfAKind prefill, decode;
    std::vector<Nanos> gaps;  ///< between words, that ended in it
    uint32_t stalls = 0;

    Nanos busy() const noexcept { return prefill.ns + decode.ns; }
};

/// The last minute. A step that reaches over several seconds is divided between them by time. Thread rule: one thread.
class Seconds {
  public:
    static constexpr int64_t kKept = 60;
    /// A second is told once a step that began in it has surely ended.
    static constexpr Nanos kTellAfter = kNanosPerSecond / 2;

    void step(Nanos begin, Nanos end, bool reads_prompts, const Work& work, uint64_t prefill_tokens,
              uint64_t output_tokens);
    void gap(Nanos end, Nanos length, bool stalled);

    /// The newest second that can be told at `now`.
    static int64_t newest_told(Nanos now) noexcept { return (now - kTellAfter) / kNanosPerSecond - 1; }

    /// That one; an empty one where nothing happened.
    Second of(int64_t number) const;

  private:
    Second& at(int64_t number);

    std::deque<Second> seconds_;  ///< ascending; without those in which nothing happened
};

}  // namespace cadans::serve
