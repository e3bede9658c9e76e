// The door between the people who ask and the engine that works: bounded, with a place taken beforehand.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"
#include "flow/request.h"
#include "sched/admission.h"

namespace cadans::runtime {

class Inbox;

/// Who asks for places.
struct Asker {
    uint64_t scope = 0;
    bool background = false;  ///< can wait
};

/// Room for a number of sequences, taken before a prompt is tokenized and held until the request has
/// ended. Given back on destruction. Move-only; the inbox outlives it. Thread rule: one thread at a time.
class Place {
  public:
    Place() = default;
    Place(Place&& other) noexcept;
    Place& operator=(Place&& other) noexcept;
    ~Place();

    uint32_t sequences() const noexcept { return sequences_; }  ///< 0: none is held
    uint32_t room() const noexcept { return sequences_ - submitted_; }
    /// One that was handed in on it has ended: another may be.
    void ended_one() noexcept;

  private:
    friend class Inbox;
    Place(Inbox* inbox, uint64_t scope, uint32_t sequences, Nanos since)
        : inbox_(inbox), scope_(scope), sequences_(sequences), since_(since) {}

    Inbox* inbox_ = nullptr;
    uint64_t scope_ = 0;
    uint32_t sequences_ = 0;
    uint32_t submitted_ = 0;
    Nanos since_ = 0;  ///< when it was taken
};

/// What the engine thread takes out, in the order in which it was put in.
struct Command {
    enum class Kind : uint8_t { admit, cancel, cancel_all, learn, forget };
    Kind kind = Kind::admit;
    SeqId seq{};
    SequenceRequest request = {};  ///< admit only
    Nanos since = 0;               ///< admit only: when its place was taken
    ModelId model{};               ///< learn and forget
    StepCost cost = {};            ///< learn only
};

/// Usage, on any http thread:
///
///     auto place = inbox.reserve(choices, now);     // busy: 429 with retry_after_seconds()
///     ... tokenize ...
///     request.seq = inbox.new_seq();                // so that it is known before its first event
///     auto sent = inbox.submit(*place, std::move(request));   // too_long and such: 400
///     ... events arrive through the fanout ...      // place dies with the request
///
/// Thread-safe. One of the two files that hold a lock.
class Inbox {
  public:
    /// `in_flight_max`: sequences that run or wait, places held for them included: max_running + queue.
    /// `house` is read, never changed; it outlives the inbox.
    Inbox(const sched::House& house, uint32_t in_flight_max);

    // For those who ask.

    /// Errors: busy (the limit is reached; names it), unavailable (draining), too_large (`sequences` alone
    /// is over the limit).
    ///
    /// Whoever is refused with less than a quarter of all places, and not in the background, is owed one: for half a
    /// minute those who hold more, or ask in the background, leave the last quarter of the places free. So one who
    /// asks with many hands has all of them while nobody else asks, and nobody is locked out.
    Result<Place> reserve(uint32_t sequences, Nanos now, Asker asker = {});

    /// When a refused asker should come back, 1 to 600 s: from the rate at which sequences ended lately, and not later
    /// than `first_end`, the time in which the first of those inside ends at the latest, if that can be said. Before
    /// any has ended, `first_end` alone.
    uint32_t retry_after_seconds(Nanos now, std::optional<Nanos> first_end = {}) const;

    SeqId new_seq() noexcept;

    /// Hands one sequence in, at most as many as the place holds. Errors: as sched::could_run();
    /// unavailable after cancel_all(). A refused one may be mended and submitted again.
    Status submit(Place& place, SequenceRequest request);

    /// The asker left. Harmless when the sequence has already ended.
    void cancel(SeqId seq);

    /// A model's steps were measured, or its weights are about to go: Scheduler::learn() and forget(). What is handed
    /// in later is heard later.
    void learn(ModelId model, const StepCost& cost);
    void forget(ModelId model);

    /// From now on reserve() answers unavailable; what is inside goes on.
    void drain();
    bool draining() const;

    uint32_t in_flight() const;
    uint32_t in_flight_max() const noexcept { return in_flight_max_; }
    /// A quarter of the places: who holds no more is owed one, and no call needs to hold more.
    uint32_t modest_share() const noexcept { return in_flight_max_ / 4; }

    // For the engine thread.

    /// Swaps the commands out; `out` is cleared first. No allocation.
    void take(std::vector<Command>& out);

    /// Tells that `count` sequences ended, for retry_after_seconds().
    void ended(uint32_t count, Nanos now);

    /// Blocks until a command is there, wake() was called, or `timeout` has passed.
    void wait(Nanos timeout);
    void wake();

    /// The last thing before the engine stops: every sequence inside is to end, and none comes in any more.
    void cancel_all();

  private:
    friend class Place;
    void give_back(uint64_t scope, uint32_t sequences) noexcept;
    void put(Command&& command);

    static constexpr uint32_t kEndsKept = 32;
    static constexpr Nanos kKeptFor = 30 * kNanosPerSecond;

    const sched::House& house_;
    const uint32_t in_flight_max_;
    std::atomic<uint64_t> next_seq_{1};

    mutable std::mutex lock_;
    std::condition_variable filled_;
    std::vector<Command> commands_;
    uint32_t in_flight_ = 0;
    std::map<uint64_t, uint32_t> held_;  ///< places by scope, of those who hold any
    Nanos kept_until_ = 0;               ///< until then a part of the places is not for everybody
    bool draining_ = false;
    bool closed_ = false;
    bool woken_ = false;
    Nanos busy_since_ = 0;  ///< since when somebody has been inside without a break
    std::array<Nanos, kEndsKept> ends_{};
    uint32_t ends_count_ = 0;  ///< in all; ends_[i % kEndsKept] is the i-th
};

}  // namespace cadans::runtime
