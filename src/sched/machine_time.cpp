#include "sched/machine_time.h"

#include <algorithm>

#include "base/check.h"

namespace cadans::sched {
namespace {

constexpr uint64_t kPicosPerMicro = 1'000'000;
constexpr Micros kTooShortToJudge = 50;
constexpr uint32_t kFollow = 16;

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
        if (item.model == model) cost.add(shape, item.first, item.count, StepCost::logits_of(item));
    }
    return shape;
}

void MachineTime::learn(ModelId model, const StepCost& cost) {
    if (costs_.size() <= index(model)) costs_.resize(index(model) + size_t{1});
    costs_[index(model)] = cost;
}

Micros MachineTime::predict(const StepPlan& plan) const noexcept {
    Micros sum = 0;
    for (uint16_t m = 0; m < costs_.size(); m++) sum += costs_[m].predict(shape_of(plan, ModelId{m}, costs_[m]));
    return sum;
}

void MachineTime::planned(const StepPlan& plan) noexcept {
    predicted_ = predict(plan);
    uint64_t own = 0;
    for (const StepItem& item : plan.items) {
        own += marginal_ps(cost_of(item.model), item.first, item.count, StepCost::logits_of(item));
    }
    uint64_t all = 0;
    for (uint16_t m = 0; m < costs_.size(); m++) all += costs_[m].unscaled_ps(shape_of(plan, ModelId{m}, costs_[m]));
    shared_ps_ = plan.items.empty() || all < own ? 0 : (all - own) / plan.items.size();
}

void MachineTime::charge(const StepItem& item, Account& account) const noexcept {
    const uint64_t own = marginal_ps(cost_of(item.model), item.first, item.count, StepCost::logits_of(item));
    account.used += static_cast<Micros>((own + shared_ps_) / kPicosPerMicro);
}

void MachineTime::done(const StepPlan& plan, Nanos measured) noexcept {
    find_least();
    if (predicted_ < kTooShortToJudge || measured <= 0) return;
    const Micros took = std::clamp(measured / kNanosPerMicro, predicted_ / 2, predicted_ * 2);
    for (uint16_t m = 0; m < costs_.size(); m++) {
        StepCost& cost = costs_[m];
        const StepShape shape = shape_of(plan, ModelId{m}, cost);
        if (shape.rows == 0) continue;
        uint32_t& scale = shape.prompt_context > 0 ? cost.prompt_scale : cost.decode_scale;
        const int64_t now = scale;
        const int64_t aim = now * took / predicted_;
        // A 16th of the way, rounded away from standing still.
        const int64_t way = aim - now;
        const int64_t move = way >= 0 ? (way + kFollow - 1) / kFollow : -((-way + kFollow - 1) / kFollow);
        scale = static_cast<uint32_t>(std::clamp<int64_t>(now + move, StepCost::kLeastScale, StepCost::kMostScale));
    }
}

}  // namespace cadans::sched
