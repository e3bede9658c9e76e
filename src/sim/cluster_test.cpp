#include "sim/cluster.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "sim/load_spec.h"
#include "sim/machine.h"
#include "sim/report.h"
#include "sim/testing/clusters.h"
#include "sim/trace_reader.h"

namespace cadans::sim {
namespace {

constexpr Nanos kGap = 400 * kNanosPerMilli;

TEST(link, what_the_step_hides_is_not_exposed) {
    const KvShape kv{1000, 10};
    const Nanos begin = 5 * kNanosPerSecond, end = 7 * kNanosPerSecond;  // T = 2 s
    for (const double rate : {1e3, 2e5, 5e5, 1e6, 1e9}) {
        Link link({rate, 0}, kv);
        const double bytes = 1000.0 * 1000, crossing = bytes / rate, step = 2;
        const double exposed = std::max(0.0, crossing - step) + std::min(step, crossing) / 10;
        EXPECT_NEAR(static_cast<double>(link.pull(1000, begin, end, 0) - end), exposed * 1e9, 100) << rate;
    }
}

TEST(link, one_transfer_waits_for_the_other_and_for_who_pulls) {
    Link link({1e6, 7}, {1000, 10});
    EXPECT_EQ(link.pull(1000, 0, 0, 0), kNanosPerSecond + 7);
    EXPECT_EQ(link.pull(1000, 0, 0, 0), 2 * kNanosPerSecond + 7);
    EXPECT_EQ(link.pull(1000, 0, 0, 5 * kNanosPerSecond), 6 * kNanosPerSecond + 7);
    EXPECT_EQ(link.busy(), 3 * kNanosPerSecond);
    EXPECT_GE(link.pull(1, 8 * kNanosPerSecond, 9 * kNanosPerSecond, 0), 9 * kNanosPerSecond);
    Link slow({1e-3, 0}, {1'000'000, 1});
    for (int i = 0; i < 100; i++) EXPECT_GT(slow.pull(100'000, 0, 0, 0), 0) << "no time is beyond all numbers";
}

TEST(link, speeds_are_read_as_networks_give_them) {
    for (const auto& [text, bits] : {std::pair{"100M", 1e8},
                                     {"1G", 1e9},
                                     {"2.5Gbit/s", 2.5e9},
                                     {"10Gbps", 1e10},
                                     {"64k", 64e3},
                                     {"1000000", 1e6}}) {
        const auto speed = parse_link_speed(text);
        ASSERT_TRUE(speed) << text;
        EXPECT_DOUBLE_EQ(*speed * 8, bits) << text;
    }
    for (const char* text : {"", "fast", "G", "-1G", "0", "1e99", "nan", "1 G", "1T"})
        EXPECT_FALSE(parse_link_speed(text)) << text;
    EXPECT_EQ(format_link_speed(312.5e6), "2.5 Gbit/s");
    EXPECT_EQ(format_link_speed(12.5e6), "100 Mbit/s");
}

using Ends = std::map<uint32_t, std::pair<Fate, std::vector<Nanos>>>;

/// Every row once, or the test fails.
template <class Run>
Ends ends_of(Run& run) {
    Ends ends;
    run.run([&](const Fate& fate, const std::vector<Nanos>& gaps) {
        EXPECT_TRUE(ends.try_emplace(fate.row, fate, gaps).second) << fate.row << " ended twice";
        return true;
    });
    return ends;
}

void expect_equal(const Ends& a, const Ends& b) {
    ASSERT_EQ(a.size(), b.size());
    for (const auto& [row, one] : a) {
        const auto& [fate, gaps] = b.at(row);
        const Fate& other = one.first;
        EXPECT_EQ(other.outcome, fate.outcome) << row;
        EXPECT_EQ(other.at, fate.at) << row;
        EXPECT_EQ(other.queue, fate.queue) << row;
        EXPECT_EQ(other.ttft, fate.ttft) << row;
        EXPECT_EQ(other.per_token, fate.per_token) << row;
        EXPECT_EQ(other.done, fate.done) << row;
        EXPECT_EQ(other.output, fate.output) << row;
        EXPECT_EQ(other.cached, fate.cached) << row;
        EXPECT_EQ(other.preemptions, fate.preemptions) << row;
        EXPECT_EQ(other.transfer, fate.transfer) << row;
        EXPECT_EQ(one.second, gaps) << row;
    }
}

TEST(cluster, of_one_worker_that_shares_is_the_simulation_of_that_machine) {
    for (const char* spec : {"gamma:rate=3,cv=4,requests=300,prompt=600,output=30", "household:people=3,days=0.5",
                             "poisson:rate=0.5,requests=100"}) {
        const auto load = *make_load(spec, 5);
        for (const std::string& policy : policy_names()) {
            Room room;
            room.kv_tokens = 16'384;
            room.context_tokens = 16'384;
            room.queue = 8;
            Machine machine = *machine_of(policy, room, built_in_fit(), kGap);
            machine.unsteady = {.reading = {900, 1024, 1500}, .writing = {1000, 1024, 2000}};
            machine.between = 3 * kNanosPerMilli;
            Simulation alone(machine, load);
            Cluster cluster({{{machine, Role::shared}}}, load);
            const Ends expected = ends_of(alone);
            expect_equal(ends_of(cluster), expected);
            EXPECT_EQ(cluster.figures()[0].steps, alone.steps());
            EXPECT_EQ(cluster.figures()[0].busy, alone.busy());
        }
    }
}

TEST(cluster, a_split_request_alone_takes_its_prompt_the_exposed_transfer_and_its_words) {
    Workload one;
    one.arrivals = {{.at = 7, .prompt = 1000, .output = 3}};
    const Machine machine = *machine_of("static-chunk", {}, built_in_fit(), 100 * kNanosPerSecond);
    const KvShape kv{32'768, 16};
    for (const double rate : {1e5, 12.5e6, 1.25e9}) {
        Cluster cluster(split_cluster(machine, 1, 1, {rate, 1000}, kv), one);
        const Ends ends = ends_of(cluster);
        const Fate& fate = ends.at(0).first;
        const Nanos prefill = isolated_prefill(machine.cost, 1000);
        EXPECT_EQ(*fate.ttft, prefill);
        const double step = static_cast<double>(prefill), crossing = 1000 * 32'768 / rate * 1e9;
        const double exposed = std::max(0.0, crossing - step) + std::min(step, crossing) / kv.layers + 1000;
        EXPECT_NEAR(static_cast<double>(fate.transfer), exposed, 100) << rate;
        EXPECT_EQ(fate.output, 3u);
        StepShape second;
        machine.cost.add(second, 1000, 1, 1);
        ASSERT_EQ(ends.at(0).second.size(), 2u);
        EXPECT_EQ(ends.at(0).second[0], fate.transfer + machine.cost.predict(second) * kNanosPerMicro);
        EXPECT_EQ(cluster.crossings().exposed, fate.transfer);
        EXPECT_EQ(cluster.crossings().moved, 1u);
    }
}

/// Method: clusters of all forms, small and large rooms, slow and fast links, bursts. Every row ends once, with all its
/// tokens, each of them in a gap; afterwards nobody holds a page.
TEST(cluster, no_sequence_is_lost_no_token_doubled_and_all_pages_come_back) {
    uint64_t preempted = 0, held = 0, refused = 0, cached = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        RandomCluster random(seed);
        SCOPED_TRACE(random.name);
        Cluster cluster(random.spec, random.load);
        Ends ends;
        cluster.run([&](const Fate& fate, const std::vector<Nanos>& gaps) {
            EXPECT_TRUE(ends.try_emplace(fate.row, fate, gaps).second) << fate.row << " ended twice";
            if (ends.size() % 10 == 0) cluster.check_invariants();
            return true;
        });
        cluster.check_invariants();
        ASSERT_EQ(ends.size(), random.load.arrivals.size());
        for (const auto& [row, end] : ends) {
            const auto& [fate, gaps] = end;
            preempted += fate.preemptions;
            cached += fate.cached;
            if (fate.outcome == metrics::Outcome::refused) {
                refused++;
                continue;
            }
            EXPECT_EQ(fate.outcome, metrics::Outcome::length);
            EXPECT_EQ(fate.output, random.load.arrivals[row].output);
            EXPECT_EQ(gaps.size() + 1, fate.output);
            Nanos told = fate.at + *fate.ttft;
            for (const Nanos gap : gaps) told += gap;
            EXPECT_EQ(told, fate.done) << "its last token ends it";
        }
        for (const MemberFigures& one : cluster.figures()) EXPECT_EQ(one.leased_bytes, 0u);
        held += static_cast<uint64_t>(cluster.crossings().held);
    }
    EXPECT_GT(preempted, 0u);
    EXPECT_GT(refused, 0u);
    EXPECT_GT(cached, 0u);
    EXPECT_GT(held, 0u) << "somebody waited for room at a decode worker";
}

TEST(cluster, the_same_load_gives_the_same_fates) {
    for (const uint64_t seed : {3, 4, 5, 6}) {
        RandomCluster random(seed);
        Cluster once(random.spec, random.load), again(random.spec, random.load);
        expect_equal(ends_of(once), ends_of(again));
    }
}

TEST(cluster, shared_workers_divide_the_load) {
    const auto load = *make_load("poisson:rate=1,requests=200,prompt=200,output=30", 5);
    const Machine machine = *machine_of("cadence", {}, built_in_fit(), kGap);
    Cluster two(shared_cluster(machine, 2), load);
    ends_of(two);
    const auto figures = two.figures();
    const double ratio = static_cast<double>(figures[0].busy) / static_cast<double>(figures[1].busy);
    EXPECT_GT(ratio, 0.8);
    EXPECT_LT(ratio, 1.25);
}

TEST(cluster, a_prompt_goes_where_its_beginning_was_read) {
    Workload load;  // two talks of ten turns, each of which resends what was said
    for (uint32_t turn = 0; turn < 10; turn++) {
        for (uint64_t talk : {1, 2}) {
            Arrival one{.at = Nanos{turn} * 100 * kNanosPerSecond, .prompt = 512 * (turn + 1) + 50, .output = 2};
            for (uint32_t block = 0; block <= turn; block++) one.blocks.push_back(mix64(talk) + block);
            load.arrivals.push_back(one);
        }
    }
    const Machine machine = *machine_of("cadence", {}, built_in_fit(), kGap);
    Cluster two(shared_cluster(machine, 2), load);
    const Ends ends = ends_of(two);
    for (const auto& [row, end] : ends) {
        EXPECT_GE(end.first.cached, 512 * (row / 2)) << row;
    }
    for (const MemberFigures& one : two.figures()) EXPECT_GT(one.steps, 15u) << "each has one of the talks";
}

TEST(cluster, decode_without_room_holds_prompts_where_they_were_read) {
    Workload load;
    for (uint32_t i = 0; i < 8; i++) load.arrivals.push_back({.at = 0, .prompt = 200, .output = 500});
    Machine machine = *machine_of("static-chunk", {}, built_in_fit(), kGap);
    ClusterSpec spec = split_cluster(machine, 1, 1, {1e12, 0}, {});
    spec.members[1].machine.house.page_bytes = 704;  // one of them, when it is whole
    Cluster tight(spec, load);
    const Ends ends = ends_of(tight);
    EXPECT_GT(tight.crossings().held, 10 * kNanosPerSecond);
    spec.members[0].machine.house.page_bytes = 480;  // two prompts: the third is not even read
    Cluster tighter(spec, load);
    const Ends later = ends_of(tighter);
    EXPECT_GT(*later.at(7).first.ttft, *ends.at(7).first.ttft);
}

}  // namespace
}  // namespace cadans::sim
