#include "serve/models/model_keeper.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"

namespace cadans::serve {

namespace {

constexpr Nanos kTellEvery = kNanosPerSecond / 4;

}  // namespace

Stay& Stay::operator=(Stay&& other) noexcept {
    if (this != &other) {
        end();
        keeper_ = std::exchange(other.keeper_, nullptr);
        model_ = other.model_;
    }
    return *this;
}

void Stay::end() noexcept {
    if (ModelKeeper* keeper = std::exchange(keeper_, nullptr)) keeper->leave(model_);
}

ModelKeeper::ModelKeeper(std::vector<ResidentSet::Member> members, ModelLoader* loader, Hands hands)
    : set_(members, steady_now()),
      loader_(loader),
      hands_(std::move(hands)),
      last_loads_(members.size()),
      loads_(members.size()) {
    pump();
}

void ModelKeeper::ask(ModelWaiter& waiter, ModelId model, std::optional<Nanos> keep) {
    if (loader_ == nullptr) keep = kForEver;
    const TicketId ticket = set_.ask(model, keep);
    waiting_.emplace(ticket, Waiting{&waiter, model});
    if (load_ && load_->first == model) waiter.load_begins(steady_now());
    pump();
}

void ModelKeeper::withdraw(const ModelWaiter& waiter) {
    const auto found =
        std::ranges::find_if(waiting_, [&](const auto& entry) { return entry.second.waiter == &waiter; });
    if (found == waiting_.end()) return;
    set_.withdraw(found->first);
    waiting_.erase(found);
    if (load_ && !wanted(load_->first)) break_off_ = true;
    pump();
}

void ModelKeeper::keep(ModelId model, Nanos keep) {
    if (loader_ == nullptr) return;
    set_.keep(model, keep, steady_now());
    pump();
}

void ModelKeeper::leave(ModelId model) {
    set_.leave(model, steady_now());
    pump();
}

bool ModelKeeper::wanted(ModelId model) const {
    return std::ranges::any_of(waiting_, [model](const auto& entry) { return entry.second.model == model; });
}

template <class Tell>
void ModelKeeper::tell(ModelId model, Tell&& tell_one) {
    for (const auto& [ticket, waiting] : waiting_)
        if (waiting.model == model) tell_one(*waiting.waiter);
}

void ModelKeeper::wake() {
    if (load_) tell(load_->first, [](ModelWaiter& waiter) { waiter.load_goes_on(); });
    pump();
}

void ModelKeeper::stop() {
    stopped_ = true;
    break_off_ = true;
}

/// What is told may lead to further calls; they are seen to in turn.
void ModelKeeper::pump() {
    pump_again_ = true;
    if (pumping_) return;
    pumping_ = true;
    while (std::exchange(pump_again_, false)) {
        while (!stopped_) {
            const Nanos now = steady_now();
            uint64_t free_bytes = 0;
            if (loader_ != nullptr && set_.needs_memory()) {
                if (unloading_ > 0) break;
                free_bytes = loader_->free_bytes(set_.resident_bytes());
            }
            std::optional<ResidentSet::Step> step = set_.next(free_bytes, now);
            if (!step) break;
            carry_out(*std::move(step), now);
        }
    }
    pumping_ = false;
    if (stopped_) return;
    const Nanos expiry = set_.next_expiry();
    Nanos span = expiry == kForEver ? kForEver : std::max<Nanos>(0, expiry - steady_now());
    if (load_) span = std::min(span, kTellEvery);
    if (span != kForEver) hands_.wake_after(span);
}

void ModelKeeper::carry_out(ResidentSet::Step step, Nanos now) {
    using Kind = ResidentSet::Step::Kind;
    if (step.kind == Kind::load) return load(step.model, now);
    if (step.kind == Kind::unload) return unload(step.model);
    const auto found = waiting_.find(step.ticket);
    check(found != waiting_.end(), "who stands in line is known");
    ModelWaiter& waiter = *found->second.waiter;
    waiting_.erase(found);
    if (step.kind == Kind::let_in)
        waiter.let_in(Stay(this, step.model), now);
    else
        waiter.refused(step.error, now);
}

void ModelKeeper::load(ModelId model, Nanos now) {
    load_.emplace(model, now);
    share_ = 0.0;
    break_off_ = false;
    hands_.load_thread([this, model] {
        const auto on_share = [this](double share) {
            share_ = share;
            return !break_off_.load();
        };
        hands_.own_thread([this, model, result = loader_->load(model, on_share)] { loaded(model, result); });
    });
    tell(model, [now](ModelWaiter& waiter) { waiter.load_begins(now); });
}

void ModelKeeper::loaded(ModelId model, const Result<std::optional<StepCost>>& result) {
    const Nanos now = steady_now();
    const Nanos begin = load_->second;
    load_.reset();
    if (result) {
        last_loads_[index(model)] = now - begin;
        loads_[index(model)]++;
        if (*result && on_cost) on_cost(model, **result);
        set_.loaded(model, now);
    } else if (result.error().code == ErrorCode::cancelled) {
        set_.load_broken_off(model);
    } else {
        set_.load_failed(model, result.error());
    }
    pump();
}

void ModelKeeper::unload(ModelId model) {
    unloading_++;
    hands_.load_thread([this, model] {
        loader_->unload(model);
        hands_.own_thread([this] {
            unloading_--;
            pump();
        });
    });
}

}  // namespace cadans::serve
