// The record over the real loop and scheduler: what every request is told adds up to what the machine did.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/random.h"
#include "metrics/figures.h"
#include "metrics/receipt.h"
#include "metrics/running_tally.h"
#include "runtime/loop.h"
#include "sched/static_chunk.h"

namespace cadans {
namespace {

using metrics::Cause;

/// Draws token 2 for everybody; a step takes 1 ms and 100 us a row on the clock of the test.
class TimedExecutor final : public Executor {
  public:
    explicit TimedExecutor(Nanos& now) : now_(now) {}
    void submit(const StepPlan& plan) override {
        result_.clear();
        result_.id = plan.id;
        result_.begin = now_;
        now_ += kNanosPerMilli + 100 * kNanosPerMicro * plan.rows();
        result_.end = now_;
        busy += result_.end - result_.begin;
        for (const StepItem& item : plan.items) {
            const auto at = static_cast<uint32_t>(result_.accepted.size());
            result_.items.push_back({item.seq, item.count, at, at + item.sample, 0, 0, false});
            if (item.sample) result_.accepted.push_back({TokenId{2}, 0.0F, 0, {}});
            shares++;
        }
        ready_ = true;
    }
    const StepResult* poll() override { return std::exchange(ready_, false) ? &result_ : nullptr; }

    Nanos busy = 0;
    int64_t shares = 0;

  private:
    Nanos& now_;
    StepResult result_;
    bool ready_ = false;
};

/// A machine with few pages, and requests that come while others run; one in eight is cancelled.
struct Day {
    explicit Day(uint64_t seed)
        : scheduler({{ModelFacts{ModelId{0}, 100, 2000, {{0, 10}}}},
                     700,
                     {.max_rows = 64, .max_running = 6, .prefill_chunk = 48}},
                    sched::static_chunk()),
          inbox(scheduler.house(), 100),
          fanout({}),
          executor(now),
          loop(inbox, scheduler, executor, fanout),
          seed_(seed) {}

    void run() {
        std::vector<Event> events;
        for (uint32_t arrived = 0; arrived < 40 || !records.empty();) {
            now += static_cast<Nanos>(draw(50)) * kNanosPerMicro;
            if (arrived < 40 && draw(100) < 10) {
                arrive();
                arrived++;
            }
            if (!records.empty() && draw(400) == 0) inbox.cancel(records.begin()->first);
            loop.turn(now);
            fanout.take(events);
            for (const Event& event : events) {
                for (auto& [seq, record] : records) record.on(event);
                if (event.kind == EventKind::token) show(event);
                if (event.kind == EventKind::finished) depart(event);
            }
        }
    }

    void arrive() {
        const SeqId seq = inbox.new_seq();
        SequenceRequest request;
        request.seq = seq;
        request.prompt.assign(1 + draw(600), TokenId{1});
        request.max_new_tokens = static_cast<uint32_t>(1 + draw(300));
        auto& record = records.emplace(seq, metrics::RequestRecord(RequestId{index(seq)}, now)).first->second;
        record.parsed(now += 1000);
        auto place = inbox.reserve(1, now);
        record.tokenized(now += 5000);
        record.queued(seq, static_cast<uint32_t>(request.prompt.size()), true, now);
        ASSERT_TRUE(inbox.submit(*place, std::move(request)));
    }

    /// The door turns a token into text and sends it; now and then the client does not take it at once.
    void show(const Event& event) {
        const auto found = records.find(event.seq);
        if (found == records.end() || draw(3) == 0) return;  // it stays back with the next one
        metrics::RequestRecord& record = found->second;
        const Nanos sent = now + static_cast<Nanos>(draw(2000));
        record.made_text({event.time, sent});
        if (draw(20) == 0) record.waited_for_client({sent, sent + static_cast<Nanos>(draw(3 * kNanosPerMilli))});
        record.flushed(event.seq, 1, sent);
        now = sent;
    }

    void depart(const Event& event) {
        auto node = records.extract(event.seq);
        metrics::RequestRecord& record = node.mapped();
        // The door hears of an end at once, so that no step is cut off.
        record.done(metrics::outcome_of(event.reason), std::max(event.time, now));
        const metrics::Figures figures = metrics::figures_of(record);
        EXPECT_EQ(figures.receipt.total(), figures.total_ns);
        EXPECT_EQ(figures.first_word.has_value(), figures.ttft_ns.has_value());
        const metrics::Receipt first = figures.first_word.value_or(metrics::Receipt{});
        EXPECT_EQ(first.total(), figures.ttft_ns.value_or(0));
        for (uint32_t cause = 0; cause < metrics::kCauses; cause++) {
            EXPECT_GE(figures.receipt.ns[cause], 0);
            EXPECT_LE(first.ns[cause], figures.receipt.ns[cause] + 4);  // a step that is cut is rounded anew
        }
        metrics::RunningTally tally(record.accepted());
        tally.enter(metrics::RunningTally::State::queued, *record.queued());
        for (const metrics::StepPart& step : record.steps()) tally.step(step);
        EXPECT_EQ(tally.spent().total(), tally.until() - record.accepted());
        requests++;
        if (event.reason == FinishReason::length) {
            EXPECT_EQ(figures.computed_tokens, figures.prompt_tokens);
            EXPECT_TRUE(figures.prompt_ns.has_value());
        }
        for (uint32_t cause = 0; cause < metrics::kCauses; cause++) receipts.ns[cause] += figures.receipt.ns[cause];
        preemptions += figures.preemptions;
        recomputed += figures.recomputed_tokens;
    }

    uint64_t draw(uint64_t below) { return mix64(seed_ * 104'729 + ++draws_) % below; }

    Nanos now = 1;
    sched::Scheduler scheduler;
    runtime::Inbox inbox;
    runtime::Fanout fanout;
    TimedExecutor executor;
    runtime::Loop loop;
    std::map<SeqId, metrics::RequestRecord> records;
    metrics::Receipt receipts;
    uint64_t preemptions = 0, recomputed = 0, requests = 0;

  private:
    uint64_t seed_;
    uint64_t draws_ = 0;
};

uint64_t from_environment(const char* name, uint64_t otherwise) {
    const char* value = std::getenv(name);
    return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

// Each step's time is shared out among those who had rows in it: over all requests, what they are told of
// their own steps is the time that the machine was busy, to the nanosecond that rounding moves per share.
TEST(receipts, own_steps_of_all_requests_are_the_time_the_machine_was_busy) {
    uint64_t preemptions = 0, recomputed = 0;
    metrics::Receipt all;
    const uint64_t days = from_environment("CADANS_DAYS", 125), first = from_environment("CADANS_FIRST_DAY", 0);
    uint64_t requests = 0;
    for (uint64_t seed = first; seed < first + days && !::testing::Test::HasFailure(); seed++) {
        Day day(seed);
        day.run();
        const Nanos own = day.receipts[Cause::own_prefill] + day.receipts[Cause::own_decode] +
                          day.receipts[Cause::recompute] + day.receipts[Cause::speculation_waste];
        EXPECT_LE(std::abs(own - day.executor.busy), 2 * day.executor.shares) << "seed " << seed;
        preemptions += day.preemptions;
        recomputed += day.recomputed;
        requests += day.requests;
        for (uint32_t cause = 0; cause < metrics::kCauses; cause++) all.ns[cause] += day.receipts.ns[cause];
    }
    EXPECT_GT(preemptions, 0u);
    EXPECT_GT(recomputed, 0u);
    for (const Cause cause :
         {Cause::queue, Cause::preempted, Cause::recompute, Cause::others_prefill, Cause::others_decode})
        EXPECT_GT(all[cause], 0) << metrics::name(cause);
    std::printf("days %llu to %llu: %llu requests %llu preemptions %llu tokens again\n",
                static_cast<unsigned long long>(first), static_cast<unsigned long long>(first + days - 1),
                static_cast<unsigned long long>(requests), static_cast<unsigned long long>(preemptions),
                static_cast<unsigned long long>(recomputed));
}

}  // namespace
}  // namespace cadans
