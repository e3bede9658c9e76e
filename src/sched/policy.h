// Who goes first and how much of a step each gets: pure functions over a read-only view.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "flow/phase.h"
#include "flow/request.h"
#include "flow/step_cost.h"
#include "sched/limits.h"

namespace cadans::sched {

/// What a policy may know of a sequence.
struct SequenceView {
    SeqId seq{};
    ModelId model{};
    Priority priority = Priority::normal;
    uint64_t scope = 0;
    uint64_t arrival = 0;    ///< rank of its admission: smaller came first
    Nanos admitted = 0;      ///< when
    Nanos last_step = 0;     ///< end of the last step it had a row in; 0 if none
    uint32_t prompt = 0;     ///< tokens of the prompt
    uint32_t known = 0;      ///< prompt and accepted tokens
    uint32_t computed = 0;   ///< of them, those whose keys and values are in its pages
    uint32_t known_max = 0;  ///< prompt + max_new_tokens
    bool preempted = false;  ///< waits with work that was lost
    bool score = false;      ///< its prompt's rows need logits
    Micros lead = 0;         ///< machine time its scope used beyond the scope that used least

    Phase phase() const noexcept { return phase_of(known, computed, 0); }
    uint32_t due() const noexcept { return known - computed; }
};

/// Both lists ascend by arrival. Valid during the call only.
struct View {
    Nanos now = 0;
    SchedulerLimits limits;
    std::span<const SequenceView> running;
    std::span<const SequenceView> waiting;
    std::span<const StepCost> costs;  ///< by ModelId; may be shorter: then nothing is predicted
    uint32_t margin = kUsualMargin;

    /// The cost of a model; zeros where there is none.
    const StepCost& cost_of(ModelId model) const noexcept {
        static constexpr StepCost kUnknown{};
        return index(model) < costs.size() ? costs[index(model)] : kUnknown;
    }
};

/// Up to `rows` rows for running[sequence].
struct Share {
    uint32_t sequence = 0;
    uint32_t rows = 0;
};

/// What Policy::next answers when nobody should start now.
inline constexpr uint32_t kNobody = UINT32_MAX;

/// A policy decides order and share; the scheduler does the rest: pages, preemption, limits. Neither
/// function allocates, reads anything but its view, or remembers.
struct Policy {
    const char* name = "";

    /// Which of view.waiting (never empty) starts next, or kNobody while somebody runs. If it has no room, nobody
    /// starts in this step.
    uint32_t (*next)(const View& view) = nullptr;

    /// Appends shares, most deserving first, each sequence at most once, rows at least 1. Pages are given
    /// out in this order; shares over due() or limits.max_rows are cut; one without pages gets less or nothing.
    void (*share)(const View& view, std::vector<Share>& shares) = nullptr;

    /// The longest time between two words of a stream that it now promises; null: it promises nothing.
    Micros (*promise)(const View& view) = nullptr;

    /// Whose prompt is served first, for forecasts; null: by arrival.
    bool (*before)(const View& view, const SequenceView& a, const SequenceView& b) = nullptr;
};

}  // namespace cadans::sched
