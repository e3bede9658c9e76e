// What a cluster keeps of each request and of each worker; only the cluster's own units include it.
#pragma once

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/random.h"
#include "kv/page_needs.h"
#include "sim/cluster.h"

namespace cadans::sim {

/// Requests whose pages a decode worker has and that had no row there yet: with so many it takes in no more, so that a
/// place never waits for the link and pages wait where there is room for them. Source: the bridge queue of DistServe.
inline constexpr uint32_t kPulledAhead = 2;

/// Names for the beginnings of a prompt, shortest first, each `tokens` longer than the one before: equal names, equal
/// beginnings. None for a prompt like no other.
struct Beginnings {
    uint32_t tokens = 0;
    std::vector<uint64_t> names;

    static Beginnings of(const Workload& workload, uint32_t row) {
        const Arrival& one = workload.arrivals[row];
        Beginnings out;
        uint64_t name = mix64(one.scope);
        const auto add = [&](uint64_t part) { out.names.push_back(name = mix64(name ^ mix64(part))); };
        out.tokens = one.tokens.empty() ? workload.block_tokens : kPageTokens;
        if (one.tokens.empty()) {
            for (const uint64_t block : one.blocks) add(block);
            return out;
        }
        for (size_t p = 0; p + kPageTokens <= one.tokens.size(); p += kPageTokens) {
            uint64_t page = 0;
            for (size_t i = p; i < p + kPageTokens; i++) page = mix64(page ^ index(one.tokens[i]));
            add(page);
        }
        return out;
    }
};

/// One request inside: what the doors of the workers would hold for it.
struct Cluster::Flight {
    Flight(uint32_t row_, const Arrival& asked, Nanos accepted)
        : row(row_), prompt(asked.prompt), output(asked.output), record(RequestId{row_}, accepted) {}

    SeqId seq() const noexcept { return SeqId{uint64_t{row} + 1}; }

    uint32_t row, prompt, output;
    metrics::RequestRecord record;
    runtime::Place place;
    Worker* at = nullptr;  ///< whose scheduler knows it, or knew it last
    bool listed = false;   ///< with Worker::started of `at`
    Nanos joined = 0;      ///< when `at` was sent it
    uint32_t written = 0;  ///< tokens of the answer

    // Where its pages move:
    Worker* to = nullptr;       ///< the decode worker; null: none has had room yet
    Nanos chosen = 0;           ///< when there was one
    uint32_t filled = 0;        ///< tokens of the prompt whose pages are full,
    uint32_t given = 0;         ///< and on their way
    Nanos last_here = 0;        ///< when the last of these has crossed
    std::optional<Nanos> read;  ///< when the prompt was
    TokenId first{};            ///< token of the answer
};

struct Cluster::Worker {
    Worker(const Member& member, uint32_t number_, uint32_t places, const ClusterSpec& spec, const Nanos& now)
        : number(number_),
          role(member.role),
          cost(member.machine.cost),
          scheduler(member.machine.house, member.machine.policy),
          inbox(scheduler.house(), places),
          fanout({}),
          executor(member.machine.cost, now, member.machine.between, member.machine.unsteady),
          loop(inbox, scheduler, executor, fanout),
          link(spec.link, spec.kv) {}

    /// Its loop has something to do, and no step keeps it from that.
    bool is_due(Nanos now) const noexcept { return woken && (!executor.busy() || executor.end() <= now); }

    const ModelFacts& model() const noexcept { return scheduler.house().models.front(); }
    const sched::SchedulerLimits& limits() const noexcept { return scheduler.house().limits; }

    /// Whether a request of that size could ever run here.
    bool fits(uint32_t prompt, uint32_t output) const noexcept {
        return uint64_t{prompt} + output <= model().context_tokens &&
               sched::tokens_computed_max(prompt, output) <= sched::longest_sequence(scheduler.house(), model());
    }

    uint64_t bytes_of(uint32_t tokens) const noexcept { return kv::most_bytes(model(), tokens, limits().max_rows); }

    /// What a flight will soon hold here: the scheduler's own promise to those it lets start.
    uint64_t promised_to(const Flight& one) const noexcept {
        return sched::promised_bytes(scheduler.house(), model(), one.prompt, one.output, one.prompt + one.written);
    }

    bool has_room_to_write(const Flight& asker) const noexcept {
        if (!fits(asker.prompt, asker.output)) return false;
        uint64_t promised = promised_to(asker);
        uint32_t ahead = 0;
        for (const Flight* one : taken) {
            promised += promised_to(*one);
            ahead += one->read.has_value() && one->written < 2;
        }
        return taken.empty() || (promised <= scheduler.house().page_bytes && ahead < kPulledAhead);
    }

    /// Prompts whose pages are still here count, besides those that are still to be read.
    bool has_room_to_read(const Flight& asker) const noexcept {
        if (!fits(asker.prompt, 1)) return false;
        return held == 0 || held + bytes_of(asker.prompt) <= scheduler.house().page_bytes;
    }

    /// A step in which all that were taken and this one write.
    Micros word_with(const Flight& asker) const noexcept {
        StepShape shape;
        for (const Flight* one : taken) cost.add(shape, one->prompt + one->written, 1, 1);
        cost.add(shape, asker.prompt, 1, 1);
        return cost.predict(shape);
    }

    /// Tokens of a prompt that the front believes to be here.
    uint32_t knows(const Beginnings& prompt) const {
        if (!scheduler.house().prefix_cache) return 0;
        uint32_t parts = 0;
        while (parts < prompt.names.size() && seen.contains(prompt.names[parts])) parts++;
        return parts * prompt.tokens;
    }

    const uint32_t number;
    const Role role;
    const StepCost cost;
    sched::Scheduler scheduler;
    runtime::Inbox inbox;
    runtime::Fanout fanout;
    ModelledExecutor executor;
    runtime::Loop loop;
    std::vector<Flight*> started;  ///< those that have had a row here, or came with pages, and live
    Event step;                    ///< the newest step_begin
    Nanos next_wakeup = sched::kNever;
    bool woken = false;  ///< something happened that its loop has not seen
    uint64_t steps = 0;
    Nanos busy = 0;

    // What the front keeps of it.
    Outlook outlook;
    bool outlook_old = true;
    Nanos unheard = 0;  ///< predicted time to read what was sent and its scheduler has not heard
    std::unordered_set<uint64_t> seen;

    // Where pages move.
    uint64_t held = 0;           ///< bytes of prompts that were sent here and are not pulled
    std::vector<Flight*> taken;  ///< whose pages come or came here, and that live
    Link link;
};

}  // namespace cadans::sim
