#include "sim/testing/storm.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "runtime/tape.h"
#include "sim/replay.h"

namespace cadans::sim {
namespace {

uint64_t from_environment(const char* name, uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// The commit that is checked out, for the line that repeats a failure.
std::string commit() {
    std::string text;
    if (std::FILE* git = ::popen("git -C " CADANS_SIM_EXCERPTS " rev-parse --short HEAD 2>/dev/null", "r")) {
        for (int c; (c = std::fgetc(git)) != EOF && c != '\n';) text += static_cast<char>(c);
        ::pclose(git);
    }
    return text.empty() ? "unknown" : text;
}

/// What the child tells its parent, also when a failed check ends it.
struct Shared {
    uint64_t seed;
    Storm::Counts counts;
    char wrong[256];
};

void add(Storm::Counts& sum, const Storm::Counts& one) {
    constexpr size_t kFields = sizeof(Storm::Counts) / sizeof(uint64_t);
    auto* to = reinterpret_cast<uint64_t*>(&sum);
    const auto* from = reinterpret_cast<const uint64_t*>(&one);
    for (size_t i = 0; i < kFields; i++) to[i] += from[i];
}

/// One seed; every 16th is recorded and played again. Empty if all was well.
std::string weather(uint64_t seed, Storm::Counts& sum) {
    if (seed % 16 != 0) {
        Storm storm(seed);
        std::string wrong = storm.run();
        add(sum, storm.counts());
        return wrong;
    }
    const std::string path = testing::TempDir() + "storm-" + std::to_string(::getpid());
    uint64_t steps = 0;
    {
        // The tape's first line tells of the house, which the storm draws: a storm that does not run knows it too.
        const Storm plan(seed);
        auto tape = runtime::Tape::open(path, plan.house(), {.policy = plan.policy(), .key = {seed, 7}});
        if (!tape) return tape.error().message;
        Storm storm(seed, tape->get());
        if (std::string wrong = storm.run(); !wrong.empty()) return wrong;
        add(sum, storm.counts());
        steps = storm.counts().steps;
        if (std::string_view(plan.policy()) == "erratic") steps = UINT64_MAX;  // nobody can name it
    }
    const auto again = replay(path);
    std::remove(path.c_str());
    if (steps == UINT64_MAX) return {};
    if (!again) return again.error().message;
    if (again->first_difference)
        return "turn " + std::to_string(*again->first_difference) + " of its tape is planned otherwise";
    return again->plans == steps ? "" : "its tape has other plans than there were steps";
}

// Goal: all promises hold in any weather. Method: CADANS_SEEDS seeds (2,000 unless given) or the one of CADANS_SEED,
// in a process of their own, so that a check that ends it still leaves the seed's line.
TEST(storm, any_seed_keeps_every_promise) {
    const bool one = std::getenv("CADANS_SEED") != nullptr;
    const uint64_t first = from_environment(one ? "CADANS_SEED" : "CADANS_FIRST_SEED", 0);
    const uint64_t count = one ? 1 : from_environment("CADANS_SEEDS", 2000);
    auto* shared = static_cast<Shared*>(
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(shared, MAP_FAILED);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        for (shared->seed = first; shared->seed < first + count; shared->seed++) {
            const std::string wrong = weather(shared->seed, shared->counts);
            std::snprintf(shared->wrong, sizeof shared->wrong, "%s", wrong.c_str());
            if (!wrong.empty()) _exit(1);
        }
        _exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    const Storm::Counts counts = shared->counts;
    const uint64_t seed = shared->seed;
    const std::string wrong = shared->wrong[0] != 0 ? shared->wrong : "a check failed";
    ::munmap(shared, sizeof(Shared));
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << "CADANS_SEED=" << seed << " sim_test --gtest_filter=storm.any*   seed " << seed << ", commit " << commit()
        << ": " << wrong;
    std::printf(
        "%lu seeds: %lu requests, %lu steps, %lu whole, %lu cancelled, %lu failed, %lu busy, %lu refused, "
        "%lu preempted, %lu cached, %lu too slow, %lu jumps, %lu drains, %lu stops, %lu drafted, %lu of them "
        "rejected\n",
        count, counts.requests, counts.steps, counts.whole, counts.cancelled, counts.failed, counts.busy,
        counts.refused, counts.preemptions, counts.cached, counts.too_slow, counts.jumps, counts.drains, counts.stops,
        counts.drafted, counts.rejected);
    if (count < 500) return;
    // A storm is worth something only if all that can happen does.
    for (const uint64_t happened :
         {counts.whole, counts.cancelled, counts.failed, counts.busy, counts.refused, counts.preemptions, counts.cached,
          counts.too_slow, counts.jumps, counts.rejected, counts.drafted - counts.rejected})
        EXPECT_GT(happened, count / 20);
    EXPECT_GT(counts.drains, 0u);
    EXPECT_GT(counts.stops, 0u);
}

TEST(storm, the_same_seed_is_the_same_storm) {
    for (uint64_t seed = 0; seed < 40; seed++) {
        Storm one(seed), two(seed);
        ASSERT_EQ(one.run(), "");
        ASSERT_EQ(two.run(), "");
        EXPECT_EQ(one.digest(), two.digest()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace cadans::sim
