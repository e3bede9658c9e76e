#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <semaphore>
#include <thread>

#include "base/clock.h"
#include "base/random.h"
#include "base/testing/allocations.h"
#include "runtime/engine_thread.h"
#include "runtime/fanout.h"
#include "runtime/inbox.h"
#include "runtime/loop.h"
#include "sched/static_chunk.h"

namespace cadans::runtime {
namespace {

constexpr Nanos kSecond = kNanosPerSecond;

sched::House house(uint32_t max_running = 4) {
    return {{ModelFacts{ModelId{0}, 100, 400, {{0, 10}}}},
            1000,
            {.max_rows = 32, .max_running = max_running, .prefill_chunk = 16}};
}

SequenceRequest request(SeqId seq, uint32_t prompt = 10, uint32_t max_new = 5) {
    SequenceRequest asked;
    asked.seq = seq;
    asked.request = RequestId{index(seq)};
    asked.prompt.assign(prompt, TokenId{1});
    asked.max_new_tokens = max_new;
    return asked;
}

/// Draws token 2 for everybody, at once; clears nothing it does not have to.
class InstantExecutor final : public Executor {
  public:
    InstantExecutor() {
        result_.items.reserve(64);
        result_.accepted.reserve(64);
    }
    void submit(const StepPlan& plan) override {
        result_.clear();
        result_.id = plan.id;
        result_.begin = time_++;
        result_.end = time_;
        for (const StepItem& item : plan.items) {
            const auto at = static_cast<uint32_t>(result_.accepted.size());
            result_.items.push_back({item.seq, item.count, at, at + item.sample, 0, 0, false});
            if (item.sample) result_.accepted.push_back({TokenId{2}, 0.0F, 0, {}});
        }
        ready_ = true;
    }
    const StepResult* poll() override { return std::exchange(ready_, false) ? &result_ : nullptr; }

  private:
    StepResult result_;
    Nanos time_ = 0;
    bool ready_ = false;
};

struct Bench {
    explicit Bench(uint32_t in_flight = 6, Notifier notifier = {}, sched::House all = house())
        : scheduler(std::move(all), sched::static_chunk()),
          inbox(scheduler.house(), in_flight),
          fanout(notifier),
          loop(inbox, scheduler, executor, fanout) {}

    std::vector<Event> take() {
        std::vector<Event> events;
        fanout.take(events);
        return events;
    }

    sched::Scheduler scheduler;
    InstantExecutor executor;
    Inbox inbox;
    Fanout fanout;
    Loop loop;
};

TEST(inbox, over_the_limit_is_busy_and_names_it) {
    Bench bench(2);
    auto first = bench.inbox.reserve(1, 0);
    auto second = bench.inbox.reserve(1, 0);
    ASSERT_TRUE(first);
    ASSERT_TRUE(second);
    auto third = bench.inbox.reserve(1, 0);
    ASSERT_FALSE(third);
    EXPECT_EQ(third.error().code, ErrorCode::busy);
    EXPECT_NE(third.error().message.find('2'), std::string::npos);
    { Place gone = std::move(*first); }
    EXPECT_EQ(bench.inbox.in_flight(), 1u);
    EXPECT_TRUE(bench.inbox.reserve(1, 0));
}

TEST(inbox, one_asker_with_many_hands_locks_nobody_out) {
    constexpr Nanos kLater = 31 * kSecond;
    const Asker greedy{1, false}, quiet{2, false}, patient{3, true};
    Bench bench(8);
    std::vector<Place> taken;
    for (int i = 0; i < 8; i++) taken.push_back(*bench.inbox.reserve(1, 0, greedy));  // alone: all of them
    EXPECT_FALSE(bench.inbox.reserve(1, 0, patient)) << "who can wait is owed nothing";
    taken.pop_back();
    taken.push_back(*bench.inbox.reserve(1, 0, greedy));
    EXPECT_FALSE(bench.inbox.reserve(1, 0, quiet));
    taken.pop_back();
    const auto refused = bench.inbox.reserve(1, 1, greedy);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("kept for others"), std::string::npos);
    EXPECT_FALSE(bench.inbox.reserve(1, 1, patient));
    EXPECT_TRUE(bench.inbox.reserve(1, 1, quiet)) << "a place was kept";
    EXPECT_TRUE(bench.inbox.reserve(1, kLater, greedy)) << "nobody has come since";
}

TEST(inbox, several_answers_take_several_places) {
    Bench bench(4);
    auto three = bench.inbox.reserve(3, 0);
    ASSERT_TRUE(three);
    EXPECT_EQ(bench.inbox.reserve(2, 0).error().code, ErrorCode::busy);
    EXPECT_EQ(bench.inbox.reserve(5, 0).error().code, ErrorCode::too_large);
    Place other;
    other = std::move(*three);
    EXPECT_EQ(bench.inbox.in_flight(), 3u);
    other = Place();
    EXPECT_EQ(bench.inbox.in_flight(), 0u);
}

TEST(inbox, a_place_takes_another_where_one_has_ended) {
    Bench bench(4);
    auto two = bench.inbox.reserve(2, 0);
    ASSERT_TRUE(two);
    for (uint32_t left = 2; left > 0; left--) {
        EXPECT_EQ(two->room(), left);
        ASSERT_TRUE(bench.inbox.submit(*two, request(bench.inbox.new_seq())));
    }
    EXPECT_EQ(two->room(), 0u);
    two->ended_one();
    EXPECT_EQ(two->room(), 1u);
    EXPECT_TRUE(bench.inbox.submit(*two, request(bench.inbox.new_seq())));
    EXPECT_EQ(bench.inbox.in_flight(), 2u) << "as many as it was reserved for";
}

TEST(inbox, what_could_never_run_is_refused_at_the_door) {
    Bench bench;
    auto place = bench.inbox.reserve(1, 0);
    const Status sent = bench.inbox.submit(*place, request(bench.inbox.new_seq(), 300, 101));
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().code, ErrorCode::too_long);
    EXPECT_TRUE(bench.inbox.submit(*place, request(bench.inbox.new_seq()))) << "a mended one may come again";
}

TEST(inbox, draining_lets_nobody_in) {
    Bench bench;
    auto inside = bench.inbox.reserve(1, 0);
    bench.inbox.drain();
    EXPECT_EQ(bench.inbox.reserve(1, 0).error().code, ErrorCode::unavailable);
    EXPECT_TRUE(bench.inbox.submit(*inside, request(bench.inbox.new_seq()))) << "who has a place is served";
}

TEST(inbox, says_when_to_come_back_from_the_pace_of_late) {
    Bench bench(1);
    auto place = bench.inbox.reserve(1, 1000 * kSecond);
    EXPECT_EQ(bench.inbox.retry_after_seconds(1000 * kSecond), 1u) << "nothing is known yet";
    EXPECT_EQ(bench.inbox.retry_after_seconds(1007 * kSecond), 7u) << "nobody ended in seven seconds";
    EXPECT_EQ(bench.inbox.retry_after_seconds(1007 * kSecond, 11 * kSecond), 11u) << "but somebody will";
    for (int i = 1; i <= 100; i++) bench.inbox.ended(1, (1000 + 4 * i) * kSecond);
    EXPECT_EQ(bench.inbox.retry_after_seconds(1400 * kSecond), 4u);
    EXPECT_EQ(bench.inbox.retry_after_seconds(1400 * kSecond, 2 * kSecond), 2u) << "somebody is nearly done";
    EXPECT_EQ(bench.inbox.retry_after_seconds(1400 * kSecond, 20 * kSecond), 4u) << "most end before they must";
    *place = Place();
    auto again = bench.inbox.reserve(1, 9000 * kSecond);
    EXPECT_EQ(bench.inbox.retry_after_seconds(9002 * kSecond), 2u) << "the idle time between does not count";
    EXPECT_EQ(bench.inbox.retry_after_seconds(90000 * kSecond), 600u);
}

TEST(inbox, commands_keep_their_order) {
    Bench bench;
    auto place = bench.inbox.reserve(2, 0);
    const SeqId first = bench.inbox.new_seq(), second = bench.inbox.new_seq();
    EXPECT_NE(first, second);
    ASSERT_TRUE(bench.inbox.submit(*place, request(first)));
    bench.inbox.cancel(first);
    ASSERT_TRUE(bench.inbox.submit(*place, request(second)));
    std::vector<Command> commands;
    bench.inbox.take(commands);
    ASSERT_EQ(commands.size(), 3u);
    EXPECT_EQ(commands[0].kind, Command::Kind::admit);
    EXPECT_EQ(commands[1].kind, Command::Kind::cancel);
    EXPECT_EQ(commands[2].seq, second);
    bench.inbox.take(commands);
    EXPECT_TRUE(commands.empty());
}

TEST(fanout, notifies_once_until_it_is_emptied) {
    int woken = 0;
    Fanout fanout({[](void* self) noexcept { ++*static_cast<int*>(self); }, &woken});
    std::vector<Event> events(2), out;
    fanout.publish(events, {});
    EXPECT_TRUE(events.empty());
    events.resize(1);
    fanout.publish(events, {});
    EXPECT_EQ(woken, 1);
    fanout.take(out);
    EXPECT_EQ(out.size(), 3u);
    fanout.publish(events, {});
    EXPECT_EQ(woken, 1) << "nothing happened";
    events.resize(1);
    fanout.publish(events, {});
    EXPECT_EQ(woken, 2);
}

TEST(loop, a_request_becomes_events_in_order) {
    Bench bench;
    auto place = bench.inbox.reserve(1, 0);
    const SeqId seq = bench.inbox.new_seq();
    ASSERT_TRUE(bench.inbox.submit(*place, request(seq, 10, 2)));
    Nanos now = 0;
    while (bench.loop.turn(++now).now) {
    }
    std::vector<EventKind> kinds;
    for (const Event& event : bench.take()) kinds.push_back(event.kind);
    const std::vector<EventKind> expected = {EventKind::step_begin, EventKind::step_share, EventKind::token,
                                             EventKind::step_begin, EventKind::step_share, EventKind::token,
                                             EventKind::finished};
    EXPECT_EQ(kinds, expected);
}

TEST(loop, idle_it_asks_for_nothing) {
    Bench bench;
    const Loop::Next next = bench.loop.turn(5);
    EXPECT_FALSE(next.now);
    EXPECT_EQ(next.wakeup, sched::kNever);
}

TEST(loop, tokens_are_out_before_the_next_step_begins) {
    // An executor that looks, at each submit, whether the step before has been told.
    class Watching final : public Executor {
      public:
        explicit Watching(Fanout& fanout) : fanout_(fanout) {}
        void submit(const StepPlan& plan) override {
            std::vector<Event> events;
            fanout_.take(events);
            told.push_back(events.size());
            inner_.submit(plan);
        }
        const StepResult* poll() override { return inner_.poll(); }
        std::vector<size_t> told;

      private:
        Fanout& fanout_;
        InstantExecutor inner_;
    };
    sched::Scheduler scheduler(house(), sched::static_chunk());
    Inbox inbox(scheduler.house(), 4);
    Fanout fanout({});
    Watching executor(fanout);
    Loop loop(inbox, scheduler, executor, fanout);
    auto place = inbox.reserve(1, 0);
    ASSERT_TRUE(inbox.submit(*place, request(inbox.new_seq(), 10, 3)));
    Nanos now = 0;
    while (loop.turn(++now).now) {
    }
    EXPECT_EQ(executor.told, (std::vector<size_t>{0, 3, 3}));
}

TEST(loop, how_full_the_house_is_can_be_read_anywhere) {
    Bench bench;
    auto place = bench.inbox.reserve(6, 0);
    for (int i = 0; i < 6; i++) ASSERT_TRUE(bench.inbox.submit(*place, request(bench.inbox.new_seq(), 40, 100)));
    bench.loop.turn(1);
    const Occupancy now = bench.fanout.occupancy();
    EXPECT_EQ(now.running, 4u);
    EXPECT_EQ(now.waiting, 2u);
    ASSERT_EQ(now.groups.size(), 1u);
    EXPECT_EQ(now.bytes_total, 1000u);
    EXPECT_EQ(now.bytes_used, now.groups[0].used * 10u);
    EXPECT_EQ(now.groups[0].used + now.groups[0].free, 52u) << "four of the longest need no more";
}

TEST(loop, a_warm_turn_allocates_nothing) {
    sched::House caching = house();
    caching.prefix_cache = true;  // full pages go to the tree, and make room for others
    Bench bench(8, {}, caching);
    auto place = bench.inbox.reserve(4, 0);
    for (int i = 0; i < 4; i++) ASSERT_TRUE(bench.inbox.submit(*place, request(bench.inbox.new_seq(), 20, 200)));
    std::vector<Event> events;
    events.reserve(4096);
    Nanos now = 0;
    for (int i = 0; i < 30; i++) bench.loop.turn(++now);
    bench.fanout.take(events);
    const uint64_t before = allocations_of_this_thread();
    for (int i = 0; i < 100; i++) {
        ASSERT_TRUE(bench.loop.turn(++now).now);
        if (i % 3 == 0) bench.fanout.take(events);
    }
    EXPECT_EQ(allocations_of_this_thread() - before, 0u);
}

/// The consumer of the thread tests: collects until as many sequences have finished as were expected.
struct Consumer {
    static void wake(void* self) noexcept { static_cast<Consumer*>(self)->events_waiting.release(); }

    void collect(Fanout& fanout, uint32_t expected) {
        std::vector<Event> events;
        while (finished < expected) {
            events_waiting.acquire();
            fanout.take(events);
            for (const Event& event : events) {
                if (event.kind == EventKind::token) tokens[event.seq]++;
                if (event.kind != EventKind::finished) continue;
                ends[event.seq].push_back(event.reason);
                finished++;
            }
        }
    }

    std::counting_semaphore<> events_waiting{0};
    uint32_t finished = 0;
    std::map<SeqId, uint32_t> tokens;
    std::map<SeqId, std::vector<FinishReason>> ends;
};

TEST(engine_thread, many_askers_each_get_one_end) {
    Consumer consumer;
    Bench bench(64, {Consumer::wake, &consumer});
    EngineThread engine(bench.loop, bench.inbox);
    constexpr uint32_t kAskers = 4, kEach = 40;
    std::vector<std::jthread> askers;
    for (uint32_t asker = 0; asker < kAskers; asker++) {
        askers.emplace_back([&, asker] {
            std::vector<Place> places;
            for (uint32_t i = 0; i < kEach; i++) {
                auto place = bench.inbox.reserve(1, steady_now());
                while (!place) {
                    EXPECT_EQ(place.error().code, ErrorCode::busy);
                    EXPECT_GE(bench.inbox.retry_after_seconds(steady_now()), 1u);
                    places.erase(places.begin());
                    place = bench.inbox.reserve(1, steady_now());
                }
                const SeqId seq = bench.inbox.new_seq();
                EXPECT_TRUE(bench.inbox.submit(*place, request(seq, 1 + (i * 7) % 50, 1 + i % 20)));
                if (mix64(asker * 1000 + i) % 4 == 0) bench.inbox.cancel(seq);
                places.push_back(std::move(*place));
                bench.fanout.occupancy();
            }
        });
    }
    consumer.collect(bench.fanout, kAskers * kEach);
    askers.clear();
    engine.stop();
    EXPECT_EQ(consumer.ends.size(), size_t{kAskers} * kEach);
    for (const auto& [seq, ends] : consumer.ends) EXPECT_EQ(ends.size(), 1u);
    EXPECT_EQ(bench.inbox.in_flight(), 0u);
    EXPECT_EQ(bench.scheduler.pages().leased_bytes(), 0u);
}

TEST(engine_thread, stopping_ends_everybody_with_cancelled) {
    Consumer consumer;
    Bench bench(64, {Consumer::wake, &consumer});
    auto place = bench.inbox.reserve(40, 0);
    auto late = bench.inbox.reserve(1, 0);
    {
        EngineThread engine(bench.loop, bench.inbox);
        for (int i = 0; i < 40; i++) {
            ASSERT_TRUE(bench.inbox.submit(*place, request(bench.inbox.new_seq(), 50, 350)));
        }
        engine.stop();
        engine.stop();
    }
    consumer.collect(bench.fanout, 40);
    for (const auto& [seq, ends] : consumer.ends) {
        EXPECT_TRUE(ends[0] == FinishReason::cancelled || ends[0] == FinishReason::length);
    }
    EXPECT_EQ(bench.inbox.submit(*late, request(bench.inbox.new_seq())).error().code, ErrorCode::unavailable);
    EXPECT_EQ(bench.inbox.reserve(1, 0).error().code, ErrorCode::unavailable);
}

TEST(engine_thread, sleeps_while_nobody_asks_and_wakes_for_one_who_does) {
    Consumer consumer;
    Bench bench(4, {Consumer::wake, &consumer});
    EngineThread engine(bench.loop, bench.inbox);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    auto place = bench.inbox.reserve(1, steady_now());
    ASSERT_TRUE(bench.inbox.submit(*place, request(bench.inbox.new_seq())));
    consumer.collect(bench.fanout, 1);
    EXPECT_EQ(consumer.tokens.begin()->second, 5u);
}

TEST(engine_thread_death, an_exception_in_the_engine_ends_the_process_with_70) {
    class Broken final : public Executor {
      public:
        void submit(const StepPlan&) override { throw std::bad_alloc(); }
        const StepResult* poll() override { return nullptr; }
    };
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(
        {
            sched::Scheduler scheduler(house(), sched::static_chunk());
            Inbox inbox(scheduler.house(), 4);
            Fanout fanout({});
            Broken executor;
            Loop loop(inbox, scheduler, executor, fanout);
            auto place = inbox.reserve(1, 0);
            (void)inbox.submit(*place, request(inbox.new_seq()));
            EngineThread engine(loop, inbox);
            while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
        },
        testing::ExitedWithCode(70), "engine thread.*bad_alloc");
}

}  // namespace
}  // namespace cadans::runtime
