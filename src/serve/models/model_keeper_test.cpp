// Goal: loads run elsewhere, one at a time, and all who wait hear of them; whoever uses a model keeps it. Method: the
// keeper's hands are a list of jobs that the test carries out when it wants to, and a loader that does as it is told.
#include "serve/models/model_keeper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>

namespace cadans::serve {
namespace {

constexpr ModelId kA{0}, kB{1};

struct Loader final : ModelLoader {
    Result<std::optional<StepCost>> load(ModelId model, const OnShare& progress) override {
        said += "load " + std::to_string(index(model)) + "; ";
        const bool go_on = progress(0.5);
        if (!go_on) return Error{ErrorCode::cancelled, "stopped", {}};
        if (trouble) return *trouble;
        return cost;
    }
    void unload(ModelId model) override { said += "unload " + std::to_string(index(model)) + "; "; }
    uint64_t free_bytes(uint64_t resident) const override {
        asked++;
        return memory - std::min(memory, resident);
    }

    uint64_t memory = 10;
    mutable int asked = 0;
    std::string said;
    std::optional<Error> trouble;
    std::optional<StepCost> cost;
};

struct Waiter final : ModelWaiter {
    void load_begins(Nanos) override { said += "begins "; }
    void load_goes_on() override { said += "on "; }
    void let_in(Stay given, Nanos) override {
        said += "in ";
        stay = std::move(given);
    }
    void refused(const Error& error, Nanos) override { said += "refused: " + error.message + " "; }

    std::string said;
    Stay stay;
};

struct House {
    explicit House(uint64_t first = 10, uint64_t second = 10)
        : keeper({{.bytes = first}, {.bytes = second}}, &loader,
                 {.load_thread = [this](std::function<void()> job) { elsewhere.push_back(std::move(job)); },
                  .own_thread = [this](std::function<void()> job) { here.push_back(std::move(job)); },
                  .wake_after = [this](Nanos span) { wake_after = span; }}) {}

    /// All jobs, those that they lead to included.
    void work() {
        while (!elsewhere.empty() || !here.empty()) {
            std::deque<std::function<void()>>& jobs = here.empty() ? elsewhere : here;
            const std::function<void()> job = std::move(jobs.front());
            jobs.pop_front();
            job();
        }
    }

    Loader loader;
    std::deque<std::function<void()>> elsewhere, here;
    Nanos wake_after = kForEver;
    ModelKeeper keeper;
};

TEST(model_keeper, those_who_come_during_a_load_join_it) {
    House house;
    Waiter one, other, later;
    house.keeper.ask(one, kA, {});
    house.keeper.ask(other, kA, {});
    EXPECT_EQ(one.said, "begins ");
    EXPECT_EQ(other.said, "begins ");
    EXPECT_LE(house.wake_after, kNanosPerSecond) << "there is progress to tell";
    house.keeper.wake();
    house.work();
    EXPECT_EQ(house.loader.said, "load 0; ");
    EXPECT_EQ(one.said, "begins on in ");
    EXPECT_EQ(house.keeper.loads(kA), 1U);
    EXPECT_TRUE(house.keeper.last_load(kA).has_value());
    house.keeper.ask(later, kA, {});
    EXPECT_EQ(later.said, "in ");
    EXPECT_EQ(house.keeper.models().users(kA), 3U);
}

TEST(model_keeper, a_model_goes_when_the_last_stay_ends_and_another_waits) {
    House house;
    Waiter one, other;
    house.keeper.ask(one, kA, {});
    house.work();
    house.keeper.ask(other, kB, {});
    house.work();
    EXPECT_EQ(house.loader.said, "load 0; ");
    one.stay = {};
    house.work();
    EXPECT_EQ(house.loader.said, "load 0; unload 0; load 1; ");
    EXPECT_EQ(other.said, "begins in ");
}

TEST(model_keeper, memory_is_not_counted_while_some_of_it_goes_back) {
    House house;
    Waiter one, other, third;
    house.keeper.ask(one, kA, {});
    house.work();
    house.keeper.ask(other, kB, {});
    one.stay = {};
    ASSERT_EQ(house.loader.said, "load 0; ");
    const int asked = house.loader.asked;
    house.keeper.ask(third, kB, {});
    house.keeper.wake();
    EXPECT_EQ(house.loader.asked, asked) << "the unloading was ordered and has not ended";
    house.work();
    EXPECT_GT(house.loader.asked, asked);
    EXPECT_EQ(house.loader.said, "load 0; unload 0; load 1; ");
    EXPECT_EQ(third.said, "begins in ");
}

TEST(model_keeper, a_load_that_nobody_waits_for_is_broken_off) {
    House house;
    {
        Waiter one;
        house.keeper.ask(one, kA, {});
        house.keeper.withdraw(one);
    }
    house.work();
    EXPECT_EQ(house.keeper.models().state(kA), ResidentSet::State::absent);
    EXPECT_EQ(house.keeper.loads(kA), 0U);
    Waiter next;
    house.keeper.ask(next, kA, {});
    house.work();
    EXPECT_EQ(next.said, "begins in ");
}

TEST(model_keeper, one_who_comes_after_a_load_was_broken_off_has_it_anew) {
    House house;
    Waiter one, next;
    house.keeper.ask(one, kA, {});
    house.keeper.withdraw(one);
    house.keeper.ask(next, kA, {});
    house.work();
    EXPECT_EQ(house.loader.said, "load 0; load 0; ");
    EXPECT_EQ(next.said, "begins begins in ");
}

TEST(model_keeper, trouble_is_told_to_all_who_wait_and_the_next_load_may_go_well) {
    House house;
    house.loader.trouble = Error{ErrorCode::unavailable, "no disk", {}};
    Waiter one, other, next;
    house.keeper.ask(one, kA, {});
    house.keeper.ask(other, kA, {});
    house.work();
    EXPECT_EQ(one.said, "begins refused: no disk ");
    EXPECT_EQ(other.said, "begins refused: no disk ");
    house.loader.trouble.reset();
    house.keeper.ask(next, kA, {});
    house.work();
    EXPECT_EQ(next.said, "begins in ");
}

TEST(model_keeper, what_cannot_fit_is_refused_at_once) {
    House house(10, 11);
    Waiter one;
    house.keeper.ask(one, kB, {});
    EXPECT_NE(one.said.find("refused: the model needs 11 B"), std::string::npos) << one.said;
    EXPECT_EQ(house.loader.said, "");
}

TEST(model_keeper, keep_alive_zero_lets_a_model_go_when_it_is_idle) {
    House house;
    Waiter one;
    house.keeper.ask(one, kA, {});
    house.work();
    house.keeper.keep(kA, 0);
    house.work();
    EXPECT_EQ(house.loader.said, "load 0; ");
    one.stay = {};
    house.work();
    EXPECT_EQ(house.loader.said, "load 0; unload 0; ");
}

TEST(model_keeper, costs_that_a_load_measured_are_told_before_anybody_is_let_in) {
    House house;
    Waiter one;
    StepCost cost;
    cost.row_ps = 7;
    house.loader.cost = cost;
    house.keeper.on_cost = [&](ModelId model, const StepCost& told) {
        EXPECT_EQ(model, kA);
        EXPECT_EQ(told.row_ps, 7U);
        one.said += "cost ";
    };
    house.keeper.ask(one, kA, {});
    house.work();
    EXPECT_EQ(one.said, "begins cost in ");
}

TEST(model_keeper, after_stop_nothing_is_begun) {
    House house;
    Waiter one, other;
    house.keeper.ask(one, kA, {});
    house.keeper.stop();
    house.work();
    EXPECT_EQ(one.said, "begins ");
    house.keeper.ask(other, kB, {});
    house.work();
    EXPECT_EQ(house.loader.said, "load 0; ");
}

TEST(model_keeper, without_a_loader_everything_is_there_for_ever) {
    ModelKeeper keeper({{.bytes = 5, .resident = true}}, nullptr, {});
    Waiter one;
    keeper.ask(one, kA, Nanos{0});
    EXPECT_EQ(one.said, "in ");
    one.stay = {};
    keeper.keep(kA, 0);
    EXPECT_EQ(keeper.models().state(kA), ResidentSet::State::resident);
}

}  // namespace
}  // namespace cadans::serve
