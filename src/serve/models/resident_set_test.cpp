// Goal: nobody's model goes under him, nobody waits for ever, memory is never promised twice, and what cannot fit is
// refused with both numbers. Method: the decisions by hand, one by one; then random days with every rule checked.
#include "serve/models/resident_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace cadans::serve {
namespace {

using Kind = ResidentSet::Step::Kind;
using State = ResidentSet::State;

constexpr ModelId kA{0}, kB{1}, kC{2};
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr Nanos kMinute = 60 * kNanosPerSecond;

/// A machine with memory for `most` bytes of models.
struct Machine {
    explicit Machine(uint64_t most, std::vector<ResidentSet::Member> members) : limit(most), set(std::move(members)) {}

    std::optional<ResidentSet::Step> next() {
        const uint64_t taken = set.resident_bytes();
        return set.next(limit - std::min(limit, taken), now);
    }
    /// The next thing, which must be this.
    ResidentSet::Step expect(Kind kind, ModelId model) {
        auto step = next();
        EXPECT_TRUE(step.has_value());
        if (!step) return {};
        EXPECT_EQ(step->kind, kind);
        EXPECT_EQ(step->model, model);
        return *step;
    }
    void nothing() { EXPECT_FALSE(next().has_value()); }

    uint64_t limit;
    ResidentSet set;
    Nanos now = kMinute;
};

std::vector<ResidentSet::Member> members(size_t count, Nanos keep = 5 * kMinute) {
    return std::vector<ResidentSet::Member>(count, {.bytes = kGiB, .keep = keep});
}

TEST(resident_set, who_is_here_from_the_start_is_idle_since_then) {
    ResidentSet set({{.bytes = 1, .keep = 10, .resident = true}}, 1000);
    EXPECT_FALSE(set.next(0, 1005)) << "a clock that began long before says nothing about the model";
    const auto step = set.next(0, 1010);
    ASSERT_TRUE(step);
    EXPECT_EQ(step->kind, ResidentSet::Step::Kind::unload);
}

TEST(resident_set, loads_on_first_use_and_lets_in_all_who_came_meanwhile) {
    Machine machine(kGiB, members(2));
    machine.set.ask(kA, {});
    machine.expect(Kind::load, kA);
    machine.nothing();
    machine.set.ask(kA, {});
    machine.nothing();
    machine.set.loaded(kA, machine.now);
    machine.expect(Kind::let_in, kA);
    machine.expect(Kind::let_in, kA);
    machine.nothing();
    EXPECT_EQ(machine.set.users(kA), 2U);
    machine.set.ask(kA, {});
    machine.expect(Kind::let_in, kA);
}

TEST(resident_set, makes_room_by_the_model_that_has_been_idle_longest) {
    Machine machine(2 * kGiB, members(3));
    for (const ModelId model : {kA, kB}) {
        machine.set.ask(model, {});
        machine.expect(Kind::load, model);
        machine.set.loaded(model, machine.now);
        machine.expect(Kind::let_in, model);
    }
    machine.now += kNanosPerSecond;
    machine.set.leave(kB, machine.now);
    machine.now += kNanosPerSecond;
    machine.set.leave(kA, machine.now);
    machine.set.ask(kC, {});
    machine.expect(Kind::unload, kB);
    machine.expect(Kind::load, kC);
    EXPECT_EQ(machine.set.state(kA), State::resident);
    EXPECT_EQ(machine.set.state(kB), State::absent);
}

TEST(resident_set, nobodys_model_goes_and_newcomers_do_not_pass_the_one_who_waits_for_it) {
    Machine machine(kGiB, members(2));
    machine.set.ask(kA, {});
    machine.expect(Kind::load, kA);
    machine.set.loaded(kA, machine.now);
    machine.expect(Kind::let_in, kA);
    machine.set.ask(kB, {});
    machine.nothing();
    machine.set.ask(kA, {});
    machine.nothing();  // else a stream of askers for A would keep B out for ever
    machine.set.leave(kA, machine.now);
    machine.expect(Kind::unload, kA);
    machine.expect(Kind::load, kB);
    machine.set.loaded(kB, machine.now);
    machine.expect(Kind::let_in, kB);
    machine.nothing();
    machine.set.leave(kB, machine.now);
    machine.expect(Kind::unload, kB);
    machine.expect(Kind::load, kA);
}

TEST(resident_set, one_who_waited_for_a_load_goes_in_before_the_model_can_go_again) {
    Machine machine(kGiB, members(2));
    machine.set.ask(kA, {});
    machine.expect(Kind::load, kA);
    machine.set.ask(kB, {});
    machine.set.ask(kA, {});
    machine.nothing();
    machine.set.loaded(kA, machine.now);
    machine.expect(Kind::let_in, kA);
    machine.expect(Kind::let_in, kA);
    machine.nothing();
}

TEST(resident_set, one_who_waits_holds_up_nobody_while_a_load_runs_that_needs_no_memory_of_theirs) {
    Machine machine(2 * kGiB, members(2));
    machine.set.ask(kA, {});
    machine.expect(Kind::load, kA);
    machine.set.loaded(kA, machine.now);
    machine.expect(Kind::let_in, kA);
    machine.set.ask(kB, {});
    machine.expect(Kind::load, kB);
    machine.set.ask(kA, {});
    machine.expect(Kind::let_in, kA);
}

TEST(resident_set, what_can_never_fit_is_refused_with_both_numbers) {
    std::vector<ResidentSet::Member> given = members(2);
    given[1].bytes = 3 * kGiB;
    Machine machine(2 * kGiB, given);
    machine.set.ask(kA, {});
    machine.expect(Kind::load, kA);
    machine.set.loaded(kA, machine.now);
    machine.expect(Kind::let_in, kA);
    const TicketId ticket = machine.set.ask(kB, {});
    const ResidentSet::Step step = machine.expect(Kind::refuse, kB);
    EXPECT_EQ(step.ticket, ticket);
    EXPECT_EQ(step.error.code, ErrorCode::no_memory);
    EXPECT_NE(step.error.message.find("3.00 GiB"), std::string::npos) << step.error.message;
    EXPECT_NE(step.error.message.find("2.00 GiB"), std::string::npos) << step.error.message;
    EXPECT_EQ(machine.set.state(kA), State::resident) << "nobody goes for one who cannot come";
}

TEST(resident_set, a_failed_load_tells_all_who_waited_and_the_next_one_tries_again) {
    Machine machine(kGiB, members(1));
    machine.set.ask(kA, {});
    machine.set.ask(kA, {});
    machine.expect(Kind::load, kA);
    machine.set.load_failed(kA, {ErrorCode::unavailable, "the disk is gone", {}});
    EXPECT_EQ(machine.expect(Kind::refuse, kA).error.message, "the disk is gone");
    EXPECT_EQ(machine.expect(Kind::refuse, kA).error.message, "the disk is gone");
    machine.nothing();
    machine.set.ask(kA, {});
    machine.expect(Kind::load, kA);
}

TEST(resident_set, a_load_that_was_broken_off_is_begun_anew_for_who_has_come_since) {
    Machine machine(kGiB, members(1));
    machine.set.withdraw(machine.set.ask(kA, {}));
    machine.nothing();
    const TicketId gone = machine.set.ask(kA, {});
    machine.expect(Kind::load, kA);
    machine.set.withdraw(gone);
    machine.set.ask(kA, {});
    machine.set.load_broken_off(kA);
    machine.expect(Kind::load, kA);
}

TEST(resident_set, an_idle_model_goes_when_its_time_is_over_and_not_while_it_is_used) {
    Machine machine(kGiB, members(1, kMinute));
    machine.set.ask(kA, {});
    machine.expect(Kind::load, kA);
    machine.set.loaded(kA, machine.now);
    machine.expect(Kind::let_in, kA);
    EXPECT_EQ(machine.set.next_expiry(), kForEver);
    machine.now += 10 * kMinute;
    machine.nothing();
    machine.set.leave(kA, machine.now);
    EXPECT_EQ(machine.set.next_expiry(), machine.now + kMinute);
    EXPECT_EQ(machine.set.expires(kA, machine.now), machine.now + kMinute);
    machine.now += kMinute - 1;
    machine.nothing();
    machine.now++;
    machine.expect(Kind::unload, kA);
    EXPECT_EQ(machine.set.next_expiry(), kForEver);
}

TEST(resident_set, the_last_who_asked_says_how_long_a_model_stays) {
    Machine machine(kGiB, members(1, kMinute));
    machine.set.ask(kA, kForEver);
    machine.expect(Kind::load, kA);
    machine.set.loaded(kA, machine.now);
    machine.expect(Kind::let_in, kA);
    machine.set.leave(kA, machine.now);
    EXPECT_EQ(machine.set.expires(kA, machine.now), kForEver);
    machine.now += 100 * kMinute;
    machine.nothing();
    machine.set.ask(kA, {});
    machine.expect(Kind::let_in, kA);
    machine.set.ask(kA, Nanos{0});
    machine.expect(Kind::let_in, kA);
    machine.set.leave(kA, machine.now);
    machine.nothing();  // the other still uses it
    machine.set.leave(kA, machine.now);
    machine.expect(Kind::unload, kA);
}

TEST(resident_set, keep_alive_zero_without_a_prompt_waits_for_those_who_use_it) {
    Machine machine(kGiB, {{.bytes = kGiB, .resident = true}});
    machine.set.ask(kA, {});
    machine.expect(Kind::let_in, kA);
    machine.set.keep(kA, 0, machine.now);
    machine.nothing();
    machine.set.leave(kA, machine.now);
    machine.expect(Kind::unload, kA);
}

/// A day of random askers. What must hold after every step is checked; at its end everybody was let in.
void live_a_day(uint64_t seed) {
    std::mt19937_64 draw(seed);
    const auto below = [&](uint64_t n) { return draw() % n; };
    const size_t models = 2 + below(4);
    std::vector<ResidentSet::Member> given;
    uint64_t largest = 0;
    for (size_t m = 0; m < models; m++) {
        given.push_back({.bytes = 1 + below(10), .keep = static_cast<Nanos>(below(20))});
        largest = std::max(largest, given.back().bytes);
    }
    Machine machine(largest + below(10), given);
    std::map<uint64_t, ModelId> waiting;
    std::vector<ModelId> inside;
    std::optional<ModelId> loading;
    uint64_t let_in = 0, asked = 0, withdrawn = 0;
    const auto settle = [&] {
        while (const auto step = machine.next()) {
            ASSERT_LE(machine.set.resident_bytes(), machine.limit) << "memory is promised once";
            switch (step->kind) {
                case Kind::load:
                    ASSERT_FALSE(loading.has_value()) << "one load at a time";
                    loading = step->model;
                    break;
                case Kind::unload:
                    ASSERT_EQ(std::ranges::count(inside, step->model), 0) << "nobody's model goes";
                    break;
                case Kind::let_in:
                    ASSERT_EQ(machine.set.state(step->model), State::resident);
                    ASSERT_EQ(waiting.erase(static_cast<uint64_t>(step->ticket)), 1U);
                    inside.push_back(step->model);
                    let_in++;
                    break;
                case Kind::refuse:
                    FAIL() << "everything fits by itself";
            }
        }
    };
    const auto leave_one = [&] {
        const size_t who = below(inside.size());
        machine.set.leave(inside[who], machine.now);
        inside.erase(inside.begin() + static_cast<std::ptrdiff_t>(who));
    };
    const auto end_load = [&] { machine.set.loaded(*std::exchange(loading, std::nullopt), machine.now); };
    for (int turn = 0; turn < 300; turn++) {
        machine.now += static_cast<Nanos>(below(5));
        const uint64_t what = below(10);
        if (what < 4) {
            const ModelId model{static_cast<uint16_t>(below(models))};
            const auto keep = below(3) == 0 ? std::optional<Nanos>(static_cast<Nanos>(below(10))) : std::nullopt;
            waiting.emplace(static_cast<uint64_t>(machine.set.ask(model, keep)), model);
            asked++;
        } else if (what == 4 && !waiting.empty()) {
            machine.set.withdraw(TicketId{waiting.begin()->first});
            waiting.erase(waiting.begin());
            withdrawn++;
        } else if (what < 7 && !inside.empty()) {
            leave_one();
        } else if (loading) {
            end_load();
        }
        settle();
    }
    while (!waiting.empty() || loading || !inside.empty()) {
        const size_t before = waiting.size() + inside.size() + (loading ? 1 : 0);
        if (loading)
            end_load();
        else if (!inside.empty())
            leave_one();
        settle();
        if (waiting.size() + inside.size() + (loading ? 1 : 0) == before && !loading && inside.empty())
            FAIL() << waiting.size() << " wait for ever";
    }
    EXPECT_EQ(let_in + withdrawn, asked);
    machine.now += 1000;
    settle();
    EXPECT_EQ(machine.set.resident_bytes(), 0U) << "all have expired";
}

TEST(resident_set, random_days_keep_every_rule) {
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        live_a_day(seed);
        if (testing::Test::HasFailure()) {
            ADD_FAILURE() << "seed " << seed;
            return;
        }
    }
}

}  // namespace
}  // namespace cadans::serve
