// Goal: the machine's seconds count the work of the rows that were computed, each at its place in its text. Method:
// events of a few steps, and the same work by hand.
#include "serve/record/live_board.h"

#include <gtest/gtest.h>

namespace cadans::serve {
namespace {

constexpr SeqId kFirst{7}, kSecond{8};

/// Plays steps of 10 ms, one after the other.
class Player {
  public:
    struct Share {
        SeqId seq;
        Phase phase;
        uint32_t rows;
        uint32_t position;  ///< prompt tokens computed after the step
        bool writes;        ///< a token came of it
    };

    explicit Player(LiveBoard& board) : board_(board) {}

    void step(const std::vector<Share>& shares) {
        Event step{
            .kind = EventKind::step_begin, .step = StepId{++steps_}, .begin = now_, .time = now_ + 10 * kNanosPerMilli};
        for (const Share& share : shares) step.rows_by_phase[static_cast<size_t>(share.phase)] += share.rows;
        board_.on(step);
        for (const Share& share : shares) {
            Event event = step;
            event.kind = EventKind::step_share;
            event.seq = share.seq;
            event.phase = share.phase;
            event.rows = share.rows;
            event.position = share.position;
            board_.on(event);
            event.kind = EventKind::token;
            if (share.writes) board_.on(event);
        }
        board_.settled();
        now_ = step.time;
    }

  private:
    LiveBoard& board_;
    Nanos now_ = kNanosPerMilli;
    uint64_t steps_ = 0;
};

ModelWork windowed_model() {
    ModelWork work;
    work.operations_per_row = 1'000;
    work.operations_per_key = 64;
    work.operations_per_logits_row = 5'000;
    work.weight_bytes = 100'000;
    work.head_bytes = 40'000;
    work.bytes_per_key = 16;
    work.window_tokens = 50;
    work.window_share = 0.75;
    return work;
}

LiveFacts facts_of(const ModelWork& work, uint32_t prompt_tokens) {
    LiveFacts facts;
    facts.id = "one";
    facts.model = "windowed";
    facts.prompt_tokens = prompt_tokens;
    facts.work = work;
    facts.cost = metrics::cost_by_rows;
    return facts;
}

void expect_work(const Work& got, const Work& want) {
    EXPECT_DOUBLE_EQ(got.operations, want.operations);
    EXPECT_DOUBLE_EQ(got.bytes, want.bytes);
}

TEST(live_board, counts_each_row_at_its_place_in_the_text) {
    const ModelWork model = windowed_model();
    LiveBoard board;
    Player player(board);
    board.add(RequestId{1}, facts_of(model, 300), {{kFirst, 300}}, 0);

    player.step({{kFirst, Phase::prefill, 200, 200, false}});
    player.step({{kFirst, Phase::prefill, 100, 300, true}});
    Work read = work_of(model, 0, 200, 0);
    read += work_of(model, 200, 100, 0);
    read += {0, 2 * model.weight_bytes + model.head_bytes};
    expect_work(board.seconds().of(0).prefill.work, read);

    player.step({{kFirst, Phase::decode, 1, 300, true}});  // the word that the prompt brought forth, at position 300
    player.step({{kFirst, Phase::decode, 1, 300, true}});
    Work written = work_of(model, 300, 1, 1);
    written += work_of(model, 301, 1, 1);
    written += {0, 2 * (model.weight_bytes + model.head_bytes)};
    expect_work(board.seconds().of(0).decode.work, written);
}

TEST(live_board, knows_the_place_of_each_answer_of_a_request) {
    const ModelWork model = windowed_model();
    LiveBoard board;
    Player player(board);
    board.add(RequestId{1}, facts_of(model, 500), {{kFirst, 400}, {kSecond, 100}}, 0);
    player.step({{kFirst, Phase::prefill, 400, 400, true}, {kSecond, Phase::prefill, 100, 100, true}});
    player.step({{kFirst, Phase::decode, 1, 400, true}, {kSecond, Phase::decode, 1, 100, true}});
    Work written = work_of(model, 400, 1, 1);
    written += work_of(model, 100, 1, 1);
    written += {0, model.weight_bytes + model.head_bytes};
    expect_work(board.seconds().of(0).decode.work, written);
}

}  // namespace
}  // namespace cadans::serve
