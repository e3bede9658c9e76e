// A server's whole inner life under bad weather: one seed, one run, every promise looked at.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "metrics/request_record.h"
#include "runtime/loop.h"
#include "sched/scheduler.h"
#include "sched/testing/fake_executor.h"
#include "sched/testing/telling_drafter.h"
#include "sim/event_heap.h"

namespace cadans::sim {

/// Real inbox, loop, scheduler, prefix cache, fanout and records; a fake model whose next token is a hash of the
/// history. Clients come with one to three answers, leave early, read slowly; pages are few; logits are no numbers;
/// the clock jumps; the server drains or stops in the middle. Looks after every turn:
///   tokens are the true ones, in order; one end for every sequence; nothing after it;
///   places held = clients inside, at most so many; times never go back; pages add up (the scheduler's own check);
///   a slow client's unread tokens never pass its buffer; receipts sum; at the end everything is given back.
class Storm {
  public:
    /// `witness` (null: none) outlives the storm.
    explicit Storm(uint64_t seed, runtime::Witness* witness = nullptr);
    ~Storm();

    /// Empty if all was well, else what was not. Broken invariants stop the process.
    std::string run();

    /// What happened, so that a test can see that everything does.
    struct Counts {
        uint64_t requests = 0, busy = 0, refused = 0, whole = 0, cancelled = 0, failed = 0, too_slow = 0;
        uint64_t preemptions = 0, cached = 0, jumps = 0, drains = 0, stops = 0, steps = 0;
        uint64_t drafted = 0, rejected = 0;
    };
    const Counts& counts() const noexcept { return counts_; }
    uint64_t digest() const noexcept { return digest_; }  ///< of every event
    const sched::House& house() const noexcept { return house_; }
    const char* policy() const noexcept { return policy_.name; }

    uint64_t draw(uint64_t below);
    bool chance(uint64_t percent) { return draw(100) < percent; }

  private:
    class HashExecutor;
    struct Answer;
    struct Client;

    sched::Policy random_policy();
    std::string arrive();
    void leave(uint64_t client);
    void read(uint64_t client);
    void drain();
    void stop();
    std::vector<TokenId> random_prompt(const ModelFacts& model);
    Answer expected_of(const SequenceRequest& request) const;
    std::string turn();
    std::string look_at(const Event& event);
    std::string look_at_token(Client& client, Answer& answer, const Event& event);
    std::string look_at_end(Client& client, Answer& answer, const Event& event);
    std::string end(Client& client);
    std::string look_around();
    std::string look_at_the_end();

    static constexpr uint32_t kBuffer = 24;  ///< tokens that a client may leave unread

    uint64_t seed_;
    uint64_t draws_ = 0;
    sched::House house_;
    sched::Policy policy_;
    Nanos now_ = 1;
    Nanos late_ = 0;  ///< how much the clock has jumped in all
    sched::TellingDrafter drafter_;
    sched::Scheduler scheduler_;
    runtime::Inbox inbox_;
    runtime::Fanout fanout_;
    std::unique_ptr<HashExecutor> executor_;
    runtime::Loop loop_;
    EventHeap heap_;
    std::vector<Event> events_;
    std::map<uint64_t, Client> clients_;                           ///< by request, those inside
    std::map<SeqId, uint64_t> client_of_;                          ///< sequences that have not ended
    std::vector<std::pair<ModelId, std::vector<TokenId>>> stems_;  ///< beginnings that prompts share
    Nanos last_event_ = 0;
    uint64_t next_request_ = 1;
    uint64_t digest_ = 0;
    bool stopped_ = false;
    Counts counts_;
};

}  // namespace cadans::sim
