// The machine's time in predicted microseconds: what a step will take, and whose it was.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/units.h"
#include "flow/step.h"
#include "flow/step_cost.h"
#include "sched/limits.h"
#include "sched/step_curve.h"

namespace cadans::sched {

/// What one scope (an asker) has had of the machine. Its address stays while it is held.
struct Account {
    uint64_t scope = 0;
    Micros used = 0;         ///< predicted time of its rows, and its part of what steps cost anyway
    uint32_t sequences = 0;  ///< inside now
};

/// Keeps the cost table of every model near what is measured, and an account for every scope.
///
/// Fair share: who has used less goes first. One who comes (back) starts at most kForgiven ahead of the busiest
/// present, so that saved-up rest cannot lock others out. Scopes without sequences are remembered, the
/// kRemembered with most use.
/// Thread rule: one thread. Cost: join() may allocate, the rest does not.
class MachineTime {
  public:
    static constexpr Micros kForgiven = 30'000'000;
    static constexpr size_t kRemembered = 256;

    /// One cost a model, by ModelId. With none, or costs of zero, nothing is predicted and accounts stay even.
    explicit MachineTime(std::vector<StepCost> costs) : costs_(std::move(costs)), curves_(costs_.size()) {}

    /// What steps of this model take, from now on.
    void learn(ModelId model, const StepCost& cost);

    std::span<const StepCost> costs() const noexcept { return costs_; }
    /// By ModelId, as many as there are costs.
    std::span<const StepCurve> curves() const noexcept { return curves_; }
    /// The cost of a model; zeros where there is none.
    const StepCost& cost_of(ModelId model) const noexcept {
        return index(model) < costs_.size() ? costs_[index(model)] : kNoCost;
    }

    /// A sequence of this scope comes in; the account is held until leave().
    Account* join(uint64_t scope);
    void leave(Account* account);

    /// Used more than the account that used least, of those present: 0 for that one.
    Micros lead(const Account& account) const noexcept { return account.used - least_; }

    /// Sum over the models of a plan, that of a draft model too.
    Micros predict(const StepPlan& plan) const noexcept;

    /// Of it, the draft model's part.
    Micros predict_drafting(const StepPlan& plan) const noexcept;

    /// This plan runs now: what its items cost together beyond their own rows is divided among them.
    void planned(const StepPlan& plan) noexcept;
    Micros predicted() const noexcept { return predicted_; }  ///< of the last plan that ran

    /// Charges an item of the plan that ran: its own rows, an equal part of the rest and, where a model drafted for it,
    /// an equal part of that.
    void charge(const StepItem& item, bool drafted, Account& account) const noexcept;

    /// The plan that ran took `measured`, a draft model's part of it `drafting`: the scales of its models follow, a
    /// 16th of the way, those that made more of the prediction more than others. One step counts as at most twice or
    /// half of what was predicted, so that a hiccup of the machine moves little. To be called after its items are
    /// charged. Linear in scopes present. Source: normalised least mean squares (Nagumo & Noda 1967).
    void done(const StepPlan& plan, Nanos measured, Nanos drafting = 0) noexcept;

    /// How much longer than predicted steps with a prompt's rows take now and then, in 1/1024: nine of ten take less,
    /// as far as bounds allow. Source: stochastic approximation of a quantile (Robbins & Monro 1951).
    uint32_t margin() const noexcept { return margin_; }

  private:
    static const StepCost kNoCost;
    static StepShape shape_of(const StepPlan& plan, ModelId model, const StepCost& cost) noexcept;
    Micros busiest() const noexcept;
    void find_least() noexcept;
    void forget_some();
    void learn_drafting(const StepPlan& plan, Nanos measured) noexcept;

    std::vector<StepCost> costs_;
    std::vector<StepCurve> curves_;
    std::map<uint64_t, Account> accounts_;
    Micros least_ = 0;
    Micros predicted_ = 0;
    Micros drafting_ = 0;       ///< of that, the draft model's part
    Micros drafting_part_ = 0;  ///< of that, each item's for which it drafts
    uint32_t margin_ = kUsualMargin;
    uint64_t shared_ps_ = 0;  ///< a part of the plan that ran
};

/// What rows of one sequence add to a step at most, by the keys that they look at. Picoseconds, unscaled.
constexpr uint64_t marginal_keys_ps(const StepCost& cost, uint32_t first, uint32_t rows) noexcept {
    return (rows > 1 ? cost.prompt_key_ps : cost.decode_key_ps) * cost.keys(first, rows);
}

/// The same by their arithmetic and logits.
constexpr uint64_t marginal_rows_ps(const StepCost& cost, uint32_t rows, uint32_t logits) noexcept {
    return cost.row_ps * rows + cost.logits_ps * logits;
}

/// Both.
constexpr uint64_t marginal_ps(const StepCost& cost, uint32_t first, uint32_t rows, uint32_t logits) noexcept {
    return marginal_rows_ps(cost, rows, logits) + marginal_keys_ps(cost, first, rows);
}

/// Time of the same rows, as steps with a prompt's rows are scaled.
constexpr Micros reading_time(const StepCost& cost, uint32_t first, uint32_t rows, uint32_t logits) noexcept {
    constexpr uint64_t kPicosPerMicro = 1'000'000;
    const uint64_t scaled = marginal_rows_ps(cost, rows, logits) / StepCost::kWhole * cost.prompt_scale +
                            marginal_keys_ps(cost, first, rows) / StepCost::kWhole * cost.prompt_key_scale;
    return static_cast<Micros>(scaled / kPicosPerMicro);
}

}  // namespace cadans::sched
