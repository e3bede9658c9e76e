#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include "base/random.h"
#include "runtime/fanout.h"
#include "runtime/inbox.h"
#include "runtime/loop.h"
#include "runtime/tape.h"
#include "sched/scheduler.h"
#include "sim/load_spec.h"
#include "sim/machine.h"
#include "sim/modelled_executor.h"
#include "sim/replay.h"
#include "sim/tape_reader.h"
#include "sim/testing/storm.h"

namespace cadans::sim {
namespace {

/// A day at home on a machine with few pages, recorded: chats that resend, preemptions, refusals.
class Recorded : public testing::TestWithParam<std::string> {
  protected:
    std::string path_ = testing::TempDir() + "tape-" + std::to_string(::getpid());  // tests run side by side

    void record(const std::string& policy, uint64_t most_bytes = uint64_t{1} << 30) {
        workload_ = *make_load("household:people=3,days=0.6", 4);
        Room room;
        room.kv_tokens = 6000;
        room.context_tokens = 6000;
        room.running = 4;
        room.queue = 3;
        const Machine machine = *machine_of(policy, room, built_in_fit(), 500 * kNanosPerMilli);
        auto tape = runtime::Tape::open(path_, machine.house, {.policy = policy, .most_bytes = most_bytes, .key = {1, 2}});
        ASSERT_TRUE(tape) << tape.error().message;
        Simulation run(machine, workload_, tape->get());
        run.run([&](const Fate& fate, const std::vector<Nanos>& gaps) {
            if (fate.outcome != metrics::Outcome::refused) {
                finished_++;
                gaps_ += gaps.size();
            }
            return true;
        });
        steps_ = run.steps();
    }

    std::string content() const {
        std::ostringstream all;
        all << std::ifstream(path_, std::ios::binary).rdbuf();
        return all.str();
    }

    void replace(const std::string& content) const { std::ofstream(path_, std::ios::binary) << content; }
    void TearDown() override { std::remove(path_.c_str()); }

    Workload workload_;
    uint64_t steps_ = 0, finished_ = 0, gaps_ = 0;
};

TEST_P(Recorded, plans_every_step_again_exactly) {
    record(GetParam());
    const auto again = replay(path_);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->policy, GetParam());
    EXPECT_GT(again->plans, 1000u);
    EXPECT_EQ(again->plans, steps_);
    EXPECT_EQ(again->matched, again->plans);
    EXPECT_FALSE(again->first_difference);
    EXPECT_EQ(again->requests, finished_);
    EXPECT_EQ(again->end, "closed");
    EXPECT_GT(again->output_tokens, 0u);
}

INSTANTIATE_TEST_SUITE_P(policies, Recorded, testing::ValuesIn(policy_names()), [](const auto& tested) {
    std::string name = tested.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

using Tapes = Recorded;

TEST_F(Tapes, a_plan_that_was_another_is_found_where_it_is) {
    record("static-chunk");
    std::istringstream lines(content());
    std::string line, changed;
    for (int number = 0; std::getline(lines, line); number++) {
        const size_t digest = line.find("\"p\":");
        if (number == 500 && digest != std::string::npos) line = line.substr(0, digest) + "\"p\":1}";
        changed += line + "\n";
    }
    replace(changed);
    const auto again = replay(path_);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->first_difference, 500u);
    EXPECT_LT(again->matched, again->plans);
}

TEST_F(Tapes, models_that_are_measured_and_go_are_in_the_record) {
    Room room;
    room.kv_tokens = 6000;
    room.context_tokens = 6000;
    room.running = 4;
    const sched::House house = machine_of("cadence", room, built_in_fit(), 500 * kNanosPerMilli)->house;
    {
        auto tape = runtime::Tape::open(path_, house, {.policy = "cadence", .key = {1, 2}});
        ASSERT_TRUE(tape);
        sched::Scheduler scheduler(house, *policy_named("cadence"));
        runtime::Inbox inbox(scheduler.house(), 10);
        runtime::Fanout fanout({});
        Nanos now = 0;
        ModelledExecutor executor(house.costs.front(), now);
        runtime::Loop loop(inbox, scheduler, executor, fanout, tape->get());
        StepCost slower = house.costs.front();
        slower.row_ps *= 2;
        for (uint64_t round = 1; round <= 3; round++) {
            auto place = inbox.reserve(1, now);
            SequenceRequest request;
            request.seq = SeqId{round};
            request.prompt.assign(300, TokenId{7});  // the same each time: what is forgotten is not found
            request.max_new_tokens = 4;
            ASSERT_TRUE(inbox.submit(*place, std::move(request)));
            for (bool busy = true; busy;) {
                busy = loop.turn(now).now;
                now += kNanosPerSecond;
            }
            inbox.forget(ModelId{0});
            inbox.learn(ModelId{0}, slower);
        }
        loop.turn(now);
    }
    const std::string all = content();
    EXPECT_NE(all.find("{\"forget\":0}"), std::string::npos);
    EXPECT_NE(all.find("{\"learn\":0,\"cost\":{\"weights_ps\":"), std::string::npos);
    const auto again = replay(path_);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->requests, 3u);
    EXPECT_GT(again->plans, 6u);
    EXPECT_EQ(again->matched, again->plans);
    EXPECT_FALSE(again->first_difference);
}

TEST_F(Tapes, holds_no_token_of_anybody) {
    record("static-chunk");
    const std::string all = content();
    // A prompt's ids as the scheduler saw them, three in a row: chance does not put these there.
    for (size_t row = 0; row < std::min<size_t>(20, workload_.arrivals.size()); row++) {
        const auto prompt = workload_.prompt_of(row);
        std::string run;
        for (size_t p = 0; p < std::min<size_t>(3, prompt.size()); p++)
            run += (p == 0 ? "" : ",") + std::to_string(index(prompt[p]));
        EXPECT_EQ(all.find(run), std::string::npos) << row;
    }
}

TEST_F(Tapes, prompts_that_began_alike_still_do) {
    record("static-chunk");
    const auto again = workload_of_tape(path_);
    ASSERT_TRUE(again) << again.error().message;
    ASSERT_EQ(again->arrivals.size(), finished_);
    uint32_t alike = 0;
    for (size_t i = 1; i < again->arrivals.size(); i++)
        for (size_t j = 0; j < i; j++) alike += again->arrivals[i].tokens[0] == again->arrivals[j].tokens[0];
    EXPECT_GT(alike, 0u);
}

TEST_F(Tapes, a_full_tape_says_so_and_replays_as_far_as_it_goes) {
    record("static-chunk", 100'000);
    EXPECT_LT(content().size(), 400'000u);
    const auto again = replay(path_);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->end, "full");
    EXPECT_EQ(again->matched, again->plans);
    EXPECT_GT(again->plans, 10u);
}

TEST_F(Tapes, a_tape_cut_off_in_a_line_replays_up_to_it) {
    record("static-chunk");
    const std::string all = content();
    replace(all.substr(0, all.size() / 2));
    const auto again = replay(path_);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->end, "cut");
    EXPECT_EQ(again->matched, again->plans);
}

/// How many of 400 damaged copies of a tape are played, and how many refused. Seeded bytes and lines.
std::array<uint32_t, 2> play_damaged(const std::string& path, const std::string& whole) {
    uint32_t refused = 0, played = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        std::string damaged = whole;
        for (uint64_t i = 0; i <= seed % 4; i++) {
            const size_t at = mix64(seed * 8 + i) % damaged.size();
            const uint64_t how = mix64(seed * 16 + i) % 3;
            if (how == 0) damaged[at] = "0123456789[]{},:\"-e"[mix64(seed + at) % 19];
            if (how == 1) damaged.erase(at, 1 + mix64(seed + at) % 40);
            if (how == 2) {  // a line again, or not at all
                const size_t begin = damaged.rfind('\n', at) + 1, end = damaged.find('\n', at);
                if (end == std::string::npos) continue;
                const std::string line = damaged.substr(begin, end + 1 - begin);
                seed % 2 == 0 ? damaged.insert(begin, line) : damaged.erase(begin, line.size());
            }
        }
        std::ofstream(path, std::ios::binary) << damaged;
        (replay(path) ? played : refused)++;
    }
    return {played, refused};
}

// Goal: a damaged tape is bad input or another plan, never a failed check.
TEST_F(Tapes, damage_never_breaks_a_check) {
    record("static-chunk", 60'000);
    const auto [played, refused] = play_damaged(path_, content());
    EXPECT_GT(refused, 0u);
    EXPECT_GT(played, 0u);
}

TEST_F(Tapes, damaged_guesses_never_break_a_check_either) {
    for (uint64_t seed = 0, drafted = 0; drafted == 0; seed++) {
        ASSERT_LT(seed, 100u) << "some storm has drafts and a policy with a name";
        const Storm plan(seed);
        if (!policy_named(plan.policy())) continue;
        {
            auto tape = runtime::Tape::open(path_, plan.house(), {.policy = plan.policy(), .key = {seed, 7}});
            ASSERT_TRUE(tape);
            Storm storm(seed, tape->get());
            ASSERT_EQ(storm.run(), "");
            drafted = storm.counts().drafted - storm.counts().rejected;
        }
        if (drafted == 0) continue;
        const std::string whole = content();
        ASSERT_NE(whole.find("\"d\":[["), std::string::npos);
        const auto [played, refused] = play_damaged(path_, whole);
        EXPECT_GT(refused, 0u);
        EXPECT_GT(played, 0u);
    }
}

TEST_F(Tapes, of_another_version_are_refused_with_both_numbers) {
    record("static-chunk", 60'000);
    std::string old = content();
    old.replace(old.find("\"version\":3"), 11, "\"version\":2");
    replace(old);
    const auto again = replay(path_);
    ASSERT_FALSE(again);
    EXPECT_NE(again.error().message.find("version 2"), std::string::npos) << again.error().message;
    EXPECT_NE(again.error().message.find("version 3"), std::string::npos) << again.error().message;
}

// Goal: what a line asks for is bounded by what a step can be, not by memory.
TEST_F(Tapes, more_scores_than_a_step_has_are_refused_at_their_line) {
    record("static-chunk", 60'000);
    std::string items;
    for (int i = 0; i < 200; i++) items += std::string(i == 0 ? "" : ",") + "[1,0,1048576,false]";
    const std::string head = content().substr(0, content().find('\n') + 1);
    replace(head + "{\"t\":1,\"r\":{\"id\":1,\"b\":0,\"e\":1,\"i\":[" + items + "]}}\n");
    const auto again = replay(path_);
    ASSERT_FALSE(again);
    EXPECT_NE(again.error().message.find(":2:"), std::string::npos) << again.error().message;
}

TEST_F(Tapes, one_model_twice_and_depths_that_nobody_writes_are_refused_at_their_line) {
    record("static-chunk", 60'000);
    const std::string whole = content();
    const size_t at = whole.find("\"models\":[") + 10, end = whole.find("],\"costs\"");
    ASSERT_LT(end, whole.find('\n'));
    replace(whole.substr(0, end) + "," + whole.substr(at, end - at) + whole.substr(end));
    auto again = replay(path_);
    ASSERT_FALSE(again);
    EXPECT_NE(again.error().message.find(":1:"), std::string::npos) << again.error().message;
    EXPECT_NE(again.error().message.find("twice"), std::string::npos) << again.error().message;
    replace(whole.substr(0, whole.find('\n') + 1) +
            "{\"t\":1,\"c\":[{\"learn\":0,\"cost\":" + std::string(500'000, '[') + std::string(500'000, ']') + "}]}\n");
    again = replay(path_);
    ASSERT_FALSE(again);
    EXPECT_NE(again.error().message.find(":2:"), std::string::npos) << again.error().message;
}

TEST_F(Tapes, what_is_no_tape_is_refused) {
    for (const char* text : {"", "{}", "{\"cadans\":\"tape\"}", "{\"cadans\":\"tape\",\"version\":3}",
                             "{\"cadans\":\"tape\",\"version\":3,\"policy\":\"luck\",\"house\":{}}", "[1]"}) {
        replace(text);
        EXPECT_FALSE(replay(path_)) << text;
    }
    EXPECT_FALSE(replay("/nowhere/at/all"));
    EXPECT_FALSE(runtime::Tape::open("/nowhere/at/all", {}, {}));
}

}  // namespace
}  // namespace cadans::sim
