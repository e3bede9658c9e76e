#include "runtime/inbox.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "base/check.h"
#include "sched/scheduler.h"

namespace cadans::runtime {

Place::Place(Place&& other) noexcept
    : inbox_(std::exchange(other.inbox_, nullptr)),
      scope_(other.scope_),
      sequences_(std::exchange(other.sequences_, 0)),
      submitted_(std::exchange(other.submitted_, 0)),
      since_(other.since_) {}

Place& Place::operator=(Place&& other) noexcept {
    if (this != &other) {
        if (inbox_ != nullptr) inbox_->give_back(scope_, sequences_);
        inbox_ = std::exchange(other.inbox_, nullptr);
        scope_ = other.scope_;
        sequences_ = std::exchange(other.sequences_, 0);
        submitted_ = std::exchange(other.submitted_, 0);
        since_ = other.since_;
    }
    return *this;
}

Place::~Place() {
    if (inbox_ != nullptr) inbox_->give_back(scope_, sequences_);
}

void Place::ended_one() noexcept {
    check(submitted_ > 0, "who ends on a place was handed in on it");
    submitted_--;
}

Inbox::Inbox(const sched::House& house, uint32_t in_flight_max) : house_(house), in_flight_max_(in_flight_max) {
    check(in_flight_max >= 1, "somebody may come in");
}

Result<Place> Inbox::reserve(uint32_t sequences, Nanos now, Asker asker) {
    check(sequences >= 1, "a place holds at least one sequence");
    std::lock_guard guard(lock_);
    if (draining_) return Error{ErrorCode::unavailable, "the server is shutting down"};
    if (sequences > in_flight_max_) {
        return Error{ErrorCode::too_large, std::to_string(sequences) + " answers are asked for at once; at most " +
                                               std::to_string(in_flight_max_) + " may run and wait"};
    }
    const uint32_t kept = modest_share();
    const auto held = held_.find(asker.scope);
    const bool modest = !asker.background && (held == held_.end() ? 0 : held->second) + sequences <= kept;
    const bool keeps = !modest && now < kept_until_;
    if (in_flight_ + sequences > in_flight_max_ - (keeps ? kept : 0)) {
        if (modest) kept_until_ = now + kKeptFor;
        return Error{ErrorCode::busy, std::to_string(in_flight_) + " of at most " + std::to_string(in_flight_max_) +
                                          " answers run or wait already" +
                                          (keeps ? ", and the last places are kept for others who ask now" : "") +
                                          "; try again later"};
    }
    if (in_flight_ == 0) busy_since_ = now;
    in_flight_ += sequences;
    held_[asker.scope] += sequences;
    return Place(this, asker.scope, sequences, now);
}

uint32_t Inbox::retry_after_seconds(Nanos now, std::optional<Nanos> first_end) const {
    std::lock_guard guard(lock_);
    // Ends since the house was last empty: an idle hour before says nothing about the pace now.
    const uint32_t kept = std::min(ends_count_, kEndsKept);
    Nanos since = busy_since_;
    uint32_t ends = 0;
    for (uint32_t back = 1; back <= kept; back++) {
        const Nanos end = ends_[(ends_count_ - back) % kEndsKept];
        if (end <= busy_since_) break;
        if (back == kEndsKept) {
            since = end;  // the oldest one kept only marks where counting begins
            break;
        }
        ends++;
    }
    Nanos per_end = std::max<Nanos>(0, now - since) / std::max(1U, ends);
    if (first_end) per_end = ends == 0 ? *first_end : std::min(per_end, *first_end);
    const Nanos seconds = (per_end + kNanosPerSecond - 1) / kNanosPerSecond;
    return static_cast<uint32_t>(std::clamp<Nanos>(seconds, 1, 600));
}

SeqId Inbox::new_seq() noexcept { return SeqId{next_seq_.fetch_add(1, std::memory_order_relaxed)}; }

Status Inbox::submit(Place& place, SequenceRequest request) {
    check(place.inbox_ == this && place.submitted_ < place.sequences_, "a sequence comes in on a place held for it");
    if (Status could = sched::could_run(house_, request); !could) return could;
    Command command;
    command.kind = Command::Kind::admit;
    command.seq = request.seq;
    command.since = place.since_;
    command.request = std::move(request);
    {
        std::lock_guard guard(lock_);
        if (closed_) return Error{ErrorCode::unavailable, "the server has stopped"};
        commands_.push_back(std::move(command));
    }
    place.submitted_++;
    filled_.notify_one();
    return Ok{};
}

void Inbox::put(Command&& command) {
    {
        std::lock_guard guard(lock_);
        commands_.push_back(std::move(command));
    }
    filled_.notify_one();
}

void Inbox::cancel(SeqId seq) { put({.kind = Command::Kind::cancel, .seq = seq}); }

void Inbox::learn(ModelId model, const StepCost& cost) {
    put({.kind = Command::Kind::learn, .model = model, .cost = cost});
}

void Inbox::forget(ModelId model) { put({.kind = Command::Kind::forget, .model = model}); }

void Inbox::cancel_all() {
    {
        std::lock_guard guard(lock_);
        closed_ = true;
        draining_ = true;
        commands_.emplace_back().kind = Command::Kind::cancel_all;
    }
    filled_.notify_one();
}

void Inbox::drain() {
    std::lock_guard guard(lock_);
    draining_ = true;
}

bool Inbox::draining() const {
    std::lock_guard guard(lock_);
    return draining_;
}

uint32_t Inbox::in_flight() const {
    std::lock_guard guard(lock_);
    return in_flight_;
}

void Inbox::take(std::vector<Command>& out) {
    out.clear();
    std::lock_guard guard(lock_);
    commands_.swap(out);
}

void Inbox::ended(uint32_t count, Nanos now) {
    std::lock_guard guard(lock_);
    for (uint32_t i = 0; i < count; i++) ends_[ends_count_++ % kEndsKept] = now;
}

void Inbox::wait(Nanos timeout) {
    std::unique_lock guard(lock_);
    const auto ready = [this] { return woken_ || !commands_.empty(); };
    if (timeout == sched::kNever) {
        filled_.wait(guard, ready);
    } else {
        filled_.wait_for(guard, std::chrono::nanoseconds(timeout), ready);
    }
    woken_ = false;
}

void Inbox::wake() {
    {
        std::lock_guard guard(lock_);
        woken_ = true;
    }
    filled_.notify_one();
}

void Inbox::give_back(uint64_t scope, uint32_t sequences) noexcept {
    std::lock_guard guard(lock_);
    in_flight_ -= sequences;
    const auto held = held_.find(scope);
    check(held != held_.end() && held->second >= sequences, "places go back to whom they came from");
    held->second -= sequences;
    if (held->second == 0) held_.erase(held);
}

}  // namespace cadans::runtime
