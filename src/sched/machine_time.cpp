#include "sched/machine_time.h"

#include <algorithm>

#include "base/check.h"

namespace cadans::sched {
namespace {

constexpr uint64_t kPicosPerMicro = 1'000'000;
constexpr Micros kTooShortToJudge = 50;
constexpr int64_t kFollow = 16;
constexpr int64_t kWhole = StepCost::kWhole;
constexpr uint32_t kLateStep = 9;  // of ten steps one is longer: up 9, down nine times 1

/// Moves a scale a 16th of the way to where it would have been right, rounded away from standing still.
void follow(uint32_t& scale, int64_t off) noexcept {
    const int64_t way = scale * off / kWhole;
    const int64_t move = way >= 0 ? (way + kFollow - 1) / kFollow : -((-way + kFollow - 1) / kFollow);
    scale = static_cast<uint32_t>(std::clamp<int64_t>(scale + move, StepCost::kLeastScale, StepCost::kMostScale));
}

/// How much longer a step took, in 1/1024 of what was predicted.
int64_t off_by(Nanos measured, Micros predicted) noexcept {
    const Micros took = std::clamp(measured / kNanosPerMicro, predicted / 2, predicted * 2);
    return (took - predicted) * kWhole / predicted;
}

}  // namespace

const StepCost MachineTime::kNoCost{};

Account* MachineTime::join(uint64_t scope) {
    Account& account = accounts_[scope];
    account.scope = scope;
    if (account.sequences == 0) {
        account.used = std::max(account.used, busiest() - kForgiven);
        account.sequences = 1;
        find_least();
    } else {
        account.sequences++;
    }
    return &account;
}

void MachineTime::leave(Account* account) {
    check(account->sequences > 0, "who leaves has come");
    account->sequences--;
    if (account->sequences > 0) return;
    find_least();
    forget_some();
}

Micros MachineTime::busiest() const noexcept {
    Micros most = 0;
    for (const auto& [scope, account] : accounts_) {
        if (account.sequences > 0) most = std::max(most, account.used);
    }
    return most;
}

void MachineTime::find_least() noexcept {
    bool any = false;
    for (const auto& [scope, account] : accounts_) {
        if (account.sequences == 0) continue;
        least_ = any ? std::min(least_, account.used) : account.used;
        any = true;
    }
}

/// Those who used least have least to be reminded of.
void MachineTime::forget_some() {
    while (accounts_.size() > kRemembered) {
        auto least = accounts_.end();
        for (auto at = accounts_.begin(); at != accounts_.end(); ++at) {
            if (at->second.sequences > 0) continue;
            if (least == accounts_.end() || at->second.used < least->second.used) least = at;
        }
        if (least == accounts_.end()) return;
        accounts_.erase(least);
    }
}

StepShape MachineTime::shape_of(const StepPlan& plan, ModelId model, const StepCost& cost) noexcept {
    StepShape shape;
    for (const StepItem& item : plan.items) {
        if (item.model == model) cost.add(shape, item);
    }
    return shape;
}

void MachineTime::learn(ModelId model, const StepCost& cost) {
    if (costs_.size() <= index(model)) costs_.resize(index(model) + size_t{1});
    costs_[index(model)] = cost;
    curves_.resize(costs_.size());
    curves_[index(model)] = {};
}

Micros MachineTime::predict(const StepPlan& plan) const noexcept {
    Micros sum = 0;
    for (uint16_t m = 0; m < costs_.size(); m++) sum += costs_[m].predict(shape_of(plan, ModelId{m}, costs_[m]));
    return sum + predict_drafting(plan);
}

Micros MachineTime::predict_drafting(const StepPlan& plan) const noexcept {
    if (plan.draftings.empty()) return 0;
    const StepCost& cost = cost_of(plan.draftings.front().model);
    Micros sum = 0;
    for (uint32_t pass = 0;; pass++) {
        StepShape shape;
        for (const Drafting& drafting : plan.draftings) cost.add_pass(shape, drafting, pass);
        if (shape.rows == 0) return sum;
        sum += cost.predict(shape);
    }
}

void MachineTime::planned(const StepPlan& plan) noexcept {
    predicted_ = predict(plan);
    drafting_ = predict_drafting(plan);
    drafting_part_ = plan.draftings.empty() ? 0 : drafting_ / static_cast<Micros>(plan.draftings.size());
    uint64_t own = 0;
    for (const StepItem& item : plan.items) {
        own += marginal_ps(cost_of(item.model), item.first, item.count, StepCost::logits_of(item));
    }
    uint64_t all = 0;
    for (uint16_t m = 0; m < costs_.size(); m++) all += costs_[m].unscaled_ps(shape_of(plan, ModelId{m}, costs_[m]));
    shared_ps_ = plan.items.empty() || all < own ? 0 : (all - own) / plan.items.size();
}

void MachineTime::charge(const StepItem& item, bool drafted, Account& account) const noexcept {
    const uint64_t own = marginal_ps(cost_of(item.model), item.first, item.count, StepCost::logits_of(item));
    account.used += static_cast<Micros>((own + shared_ps_) / kPicosPerMicro);
    if (drafted) account.used += drafting_part_;
}

/// One scale: passes of single rows are most of it, unless a prompt's tokens were caught up with.
void MachineTime::learn_drafting(const StepPlan& plan, Nanos measured) noexcept {
    if (plan.draftings.empty() || drafting_ < kTooShortToJudge || measured <= 0) return;
    StepCost& cost = costs_[index(plan.draftings.front().model)];
    StepShape first;
    for (const Drafting& drafting : plan.draftings) cost.add_pass(first, drafting, 0);
    follow(first.prompt_context > 0 ? cost.prompt_scale : cost.decode_scale, off_by(measured, drafting_));
}

void MachineTime::done(const StepPlan& plan, Nanos measured, Nanos drafting) noexcept {
    find_least();
    learn_drafting(plan, drafting);
    measured -= drafting;
    const Micros predicted = predicted_ - drafting_;
    if (predicted < kTooShortToJudge || measured <= 0) return;
    const int64_t off = off_by(measured, predicted);
    bool reads = false;
    const bool alone = std::all_of(plan.items.begin(), plan.items.end(),
                                   [&](const StepItem& item) { return item.model == plan.items.front().model; });
    for (uint16_t m = 0; m < costs_.size(); m++) {
        StepCost& cost = costs_[m];
        const StepShape shape = shape_of(plan, ModelId{m}, cost);
        if (shape.rows == 0) continue;
        if (shape.prompt_context == 0) {
            if (alone) curves_[m].learn(cost, shape, measured);
            follow(shape.verify_context > 0 ? cost.verify_scale : cost.decode_scale, off);
            continue;
        }
        reads = true;
        const auto of_keys = static_cast<int64_t>(cost.prompt_keys_ps(shape) / (cost.scaled_ps(shape) / kWhole + 1));
        const int64_t of_rest = kWhole - of_keys;
        const int64_t norm = (of_keys * of_keys + of_rest * of_rest) / kWhole;
        follow(cost.prompt_scale, off * of_rest / norm);
        follow(cost.prompt_key_scale, off * of_keys / norm);
    }
    if (!reads) return;
    const bool late = off > static_cast<int64_t>(margin_);
    margin_ = std::clamp(late ? margin_ + kLateStep : margin_ - 1, kLeastMargin, kMostMargin);
}

}  // namespace cadans::sched
