// A seeded world around a scheduler: random requests, a fake executor, and an eye on every token.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "flow/event.h"
#include "flow/step.h"
#include "sched/scheduler.h"
#include "sched/testing/fake_executor.h"
#include "sched/testing/telling_drafter.h"

namespace cadans::sched {

/// One world. The same seed gives the same run, byte for byte.
class RandomWorld {
  public:
    explicit RandomWorld(uint64_t seed);

    /// Runs to the end. Empty if all was well, else what was not. Broken invariants stop the process.
    std::string run();

    uint64_t digest() const noexcept { return digest_; }  ///< of every event
    uint32_t preemptions() const noexcept { return preemptions_; }
    uint32_t cancelled() const noexcept { return finished_[static_cast<size_t>(FinishReason::cancelled)]; }
    uint32_t failed() const noexcept { return finished_[static_cast<size_t>(FinishReason::error)]; }
    uint32_t finished_whole() const noexcept { return finished_[0] + finished_[1]; }
    uint32_t refused() const noexcept { return refused_; }
    uint64_t cached() const noexcept { return cached_; }
    uint64_t drafted() const noexcept { return drafted_; }
    uint64_t accepted() const noexcept { return drafted_ - rejected_; }
    uint64_t modelled() const noexcept { return modelled_; }
    uint64_t caught_up() const noexcept { return caught_up_; }

  private:
    template <class Dice>
    friend House random_house(Dice& world);

    /// What the test itself knows of a request, apart from the scheduler.
    struct Expected {
        ModelId model{};
        uint32_t prompt = 0;
        uint32_t max_new = 0;
        bool takes_nothing = false;
        uint32_t cached = 0;  ///< as told
        bool score = false;
        std::vector<TokenId> answer;  ///< the whole true answer
        bool ends_by_token = false;
        uint32_t tokens_seen = 0;
        uint32_t scores_seen = 0;
        bool cancel_asked = false;
        bool will_fail = false;
        bool preempted = false;
        bool finished = false;
    };

    uint64_t draw(uint64_t below) { return mix64(seed_ * 0x9E3779B97F4A7C15u + ++draws_) % below; }
    bool chance(uint64_t percent) { return draw(100) < percent; }
    /// The whole history of a sequence that leaves its pages for others of its scope.
    struct History {
        SeqId seq{};
        ModelId model{};
        uint64_t scope = 0;
        std::vector<TokenId> tokens;
    };

    static Policy random_policy(RandomWorld& world);
    SequenceRequest random_request();
    void admit_some();
    void cancel_some();
    void swap_some();
    std::string look_at(const std::vector<Event>& events);
    std::string look_at(const Event& event);
    std::string look_at_share(Expected& expected, const Event& event);
    uint32_t most_in_common(SeqId seq) const;
    std::string look_at_end(Expected& expected, const Event& event);

    uint64_t seed_;
    uint64_t draws_ = 0;
    House house_;
    TellingDrafter drafter_;
    Scheduler scheduler_;
    FakeExecutor executor_;
    std::map<SeqId, Expected> expected_;
    std::vector<Event> events_;
    Nanos now_ = 0;
    uint32_t to_come_;
    uint64_t next_seq_ = 1;
    uint64_t digest_ = 0;
    uint32_t preemptions_ = 0;
    uint32_t refused_ = 0;
    uint64_t cached_ = 0, drafted_ = 0, rejected_ = 0, modelled_ = 0, caught_up_ = 0;
    std::vector<History> histories_;
    uint32_t finished_[6] = {};
};

}  // namespace cadans::sched
