// Where every nanosecond went: the record divided into causes that sum to the total exactly.
#pragma once

#include <array>
#include <cstdint>

#include "flow/phase.h"
#include "flow/step_cost.h"
#include "metrics/causes.h"
#include "metrics/request_record.h"

namespace cadans::metrics {

/// What a step with these rows would cost, in any unit: only ratios are used. Never falls when rows grow. It has the
/// form of the fitted cost (flow/step_cost.h) without what keys cost, since a record does not hold where rows stood.
struct RowCost {
    uint64_t weights = 0, row = 1, step = 0, logits = 0;

    /// As the cost table of the model says.
    static RowCost of(const StepCost& cost) noexcept {
        return {cost.weights_ps, cost.row_ps, cost.step_ps, cost.logits_ps};
    }

    uint64_t operator()(const std::array<uint32_t, kPhases>& rows) const noexcept;
};

/// The simplest cost: every row costs the same.
inline constexpr RowCost cost_by_rows{};

/// Adds `time`, the part of one step that counts, to the causes it is due to: the masks that the step waited for, own,
/// others', recomputed, wasted.
void divide_step(const StepPart& step, Nanos time, const RowCost& cost, Receipt& receipt);

/// Divides [accepted, done] of a record that is done. At each instant the first that applies holds: own
/// step, others' step while runnable, transfer, restore, load, preempted, client_slow, sample_and_text,
/// mask, parse, tokenize, queue, scheduler. Within a step: own = what a step of only its own rows would
/// cost; the rest goes to the others' rows by marginal cost, prefill and decode apart; what rounding leaves
/// goes to the largest part.
///
/// Pure: no clock. Cost: O(n log n) in the events. The result's total() is done - accepted.
Receipt make_receipt(const RequestRecord& record, const RowCost& cost = cost_by_rows);

/// The same of [accepted, until] only: what happened up to then. `until` is not before accepted nor after done.
Receipt make_receipt_until(const RequestRecord& record, Nanos until, const RowCost& cost = cost_by_rows);

}  // namespace cadans::metrics
