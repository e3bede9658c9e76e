// Goal: a draft model guesses where that pays, is left alone where it does not, and gives way with its pages. Method:
// the fake model, drafted for by one that is always right, never, or now and then, on machines whose costs are given.
#include <gtest/gtest.h>

#include "sched/fixed_batch.h"
#include "sched/scheduler.h"
#include "sched/testing/fake_executor.h"
#include "sched/testing/slow_machine.h"

namespace cadans::sched {
namespace {

/// No guesses but the model's.
class ModelOnly final : public Drafter {
  public:
    Speculation begin(const Newcomer& who) override {
        return who.how == Speculation::off ? who.how : Speculation::model;
    }
    void read(SeqId, std::span<const TokenId>) override {}
    Guess guess(SeqId, std::span<const TokenId>, std::span<TokenId>) override { return {}; }
    void end(SeqId, std::span<const TokenId>) override {}
};

/// Which kind the fake draft model is for a sequence: FakeExecutor::draft.
SeqId one_that_is(uint64_t kind, uint64_t after = 0) {
    uint64_t seq = after + 1;
    while (mix64(seq) % 3 != kind) seq++;
    return SeqId{seq};
}
constexpr uint64_t kRight = 0, kNever = 2;

/// The draft model takes a `times`-th of the time of the other.
House house_with(uint64_t times, uint64_t pages = 1000) {
    House house;
    house.models = {{ModelId{0}, 1000, 2048, {{0, 10}}}, {ModelId{1}, 1000, 2048, {{64, 3}}}};
    house.page_bytes = pages * 10;
    house.limits = {.max_rows = 512, .max_running = 8, .prefill_chunk = 256, .gap = 10'000'000};
    StepCost small = slow_machine();
    for (uint64_t* part : {&small.weights_ps, &small.row_ps, &small.step_ps, &small.prompt_key_ps, &small.decode_key_ps,
                           &small.logits_ps})
        *part /= times;
    house.costs = {slow_machine(), small};
    house.costs[0].row_ps = 1'000'000'000;
    house.draft = House::DraftModel{ModelId{1}, {ModelId{0}}};
    return house;
}

struct Outcome {
    uint32_t steps = 0, tokens = 0, modelled = 0, rejected = 0, drafting_rows = 0;
    std::array<uint32_t, kDraftHolds> holds{};
};

class Bench {
  public:
    explicit Bench(House house)
        : house_(std::move(house)),
          scheduler_(house_, fixed_batch(), &drafter_),
          executor_(house_, scheduler_.pages()) {}

    void admit(SeqId seq, uint32_t prompt, uint32_t answer, Speculation how = Speculation::as_served) {
        SequenceRequest request;
        request.seq = seq;
        request.prompt.assign(prompt, TokenId{static_cast<uint32_t>(index(seq)) % 900});
        request.max_new_tokens = answer;
        request.speculation = how;
        ASSERT_TRUE(scheduler_.admit(std::move(request), 0));
    }

    /// To the end of all, on a machine that takes what is predicted.
    Outcome run() {
        Outcome out;
        StepResult result;
        std::vector<Event> events;
        while (const StepPlan* plan = scheduler_.plan(now_, events)) {
            scheduler_.check_invariants();
            const std::string wrong = executor_.run(
                *plan, now_, [](SeqId) { return false; }, result);
            EXPECT_EQ(wrong, "");
            if (!wrong.empty()) return out;
            result.end = result.begin + scheduler_.time().predicted() * kNanosPerMicro;
            result.drafting = scheduler_.time().predict_drafting(*plan) * kNanosPerMicro;
            scheduler_.commit(result, result.end, events);
            now_ = result.end;
            scheduler_.check_invariants();
            out.steps++;
        }
        for (const Event& event : events) {
            out.tokens += event.kind == EventKind::token;
            preemptions += event.kind == EventKind::preempted;
            if (event.kind != EventKind::step_share) continue;
            out.modelled += event.modelled;
            out.rejected += event.rejected;
            out.drafting_rows += event.drafting_rows;
            if (event.phase != Phase::prefill) out.holds[static_cast<size_t>(event.hold)]++;
        }
        return out;
    }

    Nanos now() const { return now_; }
    const Scheduler& scheduler() const { return scheduler_; }
    uint32_t preemptions = 0;

  private:
    House house_;
    ModelOnly drafter_;
    Scheduler scheduler_;
    FakeExecutor executor_;
    Nanos now_ = 0;
};

TEST(model_drafting, a_model_that_is_right_and_small_makes_answers_faster) {
    Bench plain(house_with(20)), drafted(house_with(20));
    plain.admit(one_that_is(kRight), 300, 200, Speculation::off);
    drafted.admit(one_that_is(kRight), 300, 200);
    const Outcome without = plain.run(), with = drafted.run();
    EXPECT_EQ(without.tokens, 200u);
    EXPECT_EQ(with.tokens, 200u);
    EXPECT_EQ(without.drafting_rows, 0u);
    EXPECT_EQ(with.rejected, 0u);
    EXPECT_LT(with.steps, without.steps / 2);
    EXPECT_LT(drafted.now(), plain.now() * 2 / 3);
    EXPECT_EQ(drafted.scheduler().pages().leased_bytes(), 0u) << "its pages go with the sequence";
}

TEST(model_drafting, one_that_is_as_slow_as_the_other_is_never_asked_and_the_reason_is_told) {
    for (const uint32_t prompt : {1u, 300u}) {
        Bench bench(house_with(1));
        bench.admit(one_that_is(kRight), prompt, 100);
        const Outcome out = bench.run();
        EXPECT_EQ(out.drafting_rows, 0u);
        EXPECT_GT(out.holds[static_cast<size_t>(DraftHold::slow)], 90u);
    }
}

TEST(model_drafting, one_that_is_never_right_is_soon_left_alone_and_costs_next_to_nothing) {
    Bench plain(house_with(5)), drafted(house_with(5));
    SeqId seq{0};
    for (int i = 0; i < 10; i++) {
        seq = one_that_is(kNever, index(seq));
        plain.admit(seq, 100, 200, Speculation::off);
        EXPECT_EQ(plain.run().tokens, 200u);
        drafted.admit(seq, 100, 200);
        const Outcome out = drafted.run();
        EXPECT_EQ(out.tokens, 200u);
        EXPECT_EQ(out.rejected, out.modelled);
        EXPECT_LT(out.modelled, 40u);
        EXPECT_GT(out.holds[static_cast<size_t>(DraftHold::unlikely)], 150u);
    }
    EXPECT_LT(static_cast<double>(drafted.now()), 1.03 * static_cast<double>(plain.now()));
}

TEST(model_drafting, pages_of_the_draft_model_go_before_anybody_gives_way) {
    // Two sequences of 25 pages each fill 52; what the draft model holds beside them must go, and nobody is preempted.
    Bench bench(house_with(20, 52));
    bench.admit(one_that_is(kRight), 200, 200);
    bench.admit(one_that_is(kRight, index(one_that_is(kRight))), 200, 200);
    const Outcome out = bench.run();
    EXPECT_EQ(out.tokens, 400u);
    EXPECT_GT(out.modelled, 0u);
    EXPECT_EQ(bench.preemptions, 0u);
}

TEST(model_drafting, a_context_longer_than_the_draft_models_ends_its_guesses_and_nothing_else) {
    House house = house_with(20);
    house.models[1].context_tokens = 150;
    Bench bench(house);
    bench.admit(one_that_is(kRight), 100, 300);
    const Outcome out = bench.run();
    EXPECT_EQ(out.tokens, 300u);
    EXPECT_GT(out.modelled, 20u);
    EXPECT_LE(out.modelled, 50u);
}

TEST(model_drafting, a_model_without_a_drafter_is_left_as_it_is) {
    House house = house_with(20);
    house.draft->drafts_for.clear();
    Bench bench(house);
    bench.admit(one_that_is(kRight), 100, 50);
    EXPECT_EQ(bench.run().drafting_rows, 0u);
}

}  // namespace
}  // namespace cadans::sched
