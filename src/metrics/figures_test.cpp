#include "metrics/figures.h"

#include <gtest/gtest.h>

namespace cadans::metrics {
namespace {

constexpr Nanos kMs = kNanosPerMilli;

/// Drives one record as the doors and the engine do.
struct Life {
    explicit Life(Nanos accepted = 0) : record(RequestId{1}, accepted) {}

    void share(SeqId seq, Nanos begin, Nanos end, Phase phase, uint32_t rows, uint32_t position, uint32_t cached = 0) {
        Event whole;
        whole.kind = EventKind::step_begin;
        whole.step = StepId{++steps};
        whole.begin = begin;
        whole.time = end;
        whole.rows_by_phase[static_cast<uint8_t>(phase)] = rows;
        record.on(whole);
        Event mine = whole;
        mine.kind = EventKind::step_share;
        mine.seq = seq;
        mine.phase = phase;
        mine.rows = rows;
        mine.position = position;
        mine.cached = cached;
        record.on(mine);
    }

    void token(SeqId seq, Nanos time) {
        Event event;
        event.kind = EventKind::token;
        event.seq = seq;
        event.time = time;
        record.on(event);
    }

    RequestRecord record;
    uint64_t steps = 0;
};

constexpr SeqId kOne{1}, kTwo{2};

Life streamed() {
    Life life;
    life.record.parsed(1 * kMs);
    life.record.tokenized(3 * kMs);
    life.record.queued(kOne, 100, true, 4 * kMs);
    life.share(kOne, 10 * kMs, 110 * kMs, Phase::prefill, 80, 100, 20);
    life.token(kOne, 110 * kMs);
    life.record.flushed(kOne, 1, 111 * kMs);
    for (int i = 1; i <= 4; i++) {
        const Nanos end = (110 + 50 * i) * kMs;
        life.share(kOne, end - 50 * kMs, end, Phase::decode, 1, 100, 20);
        life.token(kOne, end);
        life.record.flushed(kOne, 1, end + i * kMs);
    }
    life.record.done(Outcome::length, 320 * kMs);
    return life;
}

TEST(figures, are_the_formulas_of_the_record) {
    const Figures figures = figures_of(streamed().record);
    EXPECT_FALSE(figures.cold);
    EXPECT_EQ(figures.ttft_ns, 111 * kMs);
    EXPECT_EQ(figures.prompt_ns, 100 * kMs);
    EXPECT_EQ(figures.queue_ns, 6 * kMs);
    EXPECT_EQ(figures.total_ns, 320 * kMs);
    EXPECT_EQ(figures.receipt.total(), figures.total_ns);
    EXPECT_EQ(figures.prompt_tokens, 100u);
    EXPECT_EQ(figures.cached_tokens, 20u);
    EXPECT_EQ(figures.computed_tokens, 80u);
    EXPECT_EQ(figures.output_tokens, 5u);
    EXPECT_DOUBLE_EQ(*figures.prompt_tokens_per_second, 800.0) << "cached tokens never inflate the rate";
    EXPECT_DOUBLE_EQ(*figures.output_tokens_per_second, 4 / 0.203);
    EXPECT_EQ(figures.gap_ns->p50, 51 * kMs);
    EXPECT_EQ(figures.gap_ns->max, 51 * kMs);
    EXPECT_EQ(figures.per_output_token_ns, 50 * kMs);
}

TEST(figures, what_an_answer_that_does_not_stream_cannot_have_is_absent) {
    Life life;
    life.record.queued(kOne, 4, true, 0);
    life.share(kOne, 0, 10, Phase::prefill, 4, 4);
    life.token(kOne, 10);
    life.share(kOne, 10, 20, Phase::decode, 1, 4);
    life.token(kOne, 20);
    life.record.done(Outcome::stop, 25);
    const Figures figures = figures_of(life.record);
    EXPECT_FALSE(figures.ttft_ns);
    EXPECT_FALSE(figures.gap_ns);
    EXPECT_FALSE(figures.output_tokens_per_second);
    EXPECT_EQ(figures.per_output_token_ns, 10);
}

TEST(figures, one_flush_has_a_first_token_but_no_rate) {
    Life life;
    life.record.queued(kOne, 4, true, 0);
    life.share(kOne, 0, 10, Phase::prefill, 4, 4);
    life.token(kOne, 10);
    life.record.flushed(kOne, 1, 12);
    life.record.done(Outcome::stop, 25);
    const Figures figures = figures_of(life.record);
    EXPECT_EQ(figures.ttft_ns, 12);
    EXPECT_FALSE(figures.output_tokens_per_second);
    EXPECT_FALSE(figures.per_output_token_ns);
    EXPECT_FALSE(timings_of(life.record).predicted_per_second);
}

TEST(figures, a_refused_request_has_counts_and_no_rates) {
    RequestRecord record(RequestId{1}, 0);
    record.done(Outcome::refused, 5);
    const Figures figures = figures_of(record);
    EXPECT_FALSE(figures.prompt_ns);
    EXPECT_FALSE(figures.prompt_tokens_per_second);
    EXPECT_EQ(figures.output_tokens, 0u);
    const Timings timings = timings_of(record);
    EXPECT_FALSE(timings.prompt_per_second);
    EXPECT_FALSE(timings.predicted_per_token_ms);
    EXPECT_EQ(ollama_durations_of(record).prompt_eval_duration, 0);
}

TEST(figures, queue_time_leaves_out_the_load_and_the_request_is_cold) {
    Life life;
    life.record.queued(kOne, 4, true, 10);
    life.record.waited_for_load({5, 70});
    life.record.waited_for_restore({60, 80});
    life.share(kOne, 100, 110, Phase::prefill, 4, 4);
    life.record.done(Outcome::stop, 120);
    const Figures figures = figures_of(life.record);
    EXPECT_TRUE(figures.cold);
    EXPECT_EQ(figures.load_ns, 65);
    EXPECT_EQ(figures.restore_ns, 20);
    EXPECT_EQ(figures.queue_ns, 90 - 70) << "what overlaps is taken out once";
}

TEST(figures, several_answers_to_one_prompt_count_it_once_and_pool_their_gaps) {
    Life life;
    life.record.queued(kOne, 10, true, 0);
    life.record.queued(kTwo, 10, false, 0);
    life.share(kOne, 0, 10, Phase::prefill, 10, 10);
    life.token(kOne, 10);
    life.record.flushed(kOne, 1, 10);
    life.share(kTwo, 10, 20, Phase::prefill, 10, 10);
    life.token(kTwo, 20);
    life.record.flushed(kTwo, 1, 20);
    life.token(kOne, 30);
    life.record.flushed(kOne, 1, 30);
    life.token(kTwo, 30);
    life.record.flushed(kTwo, 1, 30);
    life.record.done(Outcome::stop, 30);
    const Figures figures = figures_of(life.record);
    EXPECT_EQ(figures.prompt_tokens, 10u);
    EXPECT_EQ(figures.computed_tokens, 10u);
    EXPECT_EQ(figures.output_tokens, 4u);
    EXPECT_EQ(figures.prompt_ns, 20);
    EXPECT_EQ(figures.gap_ns->p50, 10);
    EXPECT_EQ(figures.gap_ns->max, 20);
}

TEST(figures, tokens_after_a_stop_string_are_not_counted) {
    Life life;
    life.record.queued(kOne, 1, true, 0);
    life.share(kOne, 0, 10, Phase::decode, 1, 1);
    life.token(kOne, 10);
    life.record.closed(kOne);
    life.token(kOne, 20);
    life.record.done(Outcome::stop, 30);
    EXPECT_EQ(figures_of(life.record).output_tokens, 1u);
}

// Five drafts, four of them accepted, so five tokens; the second completes a stop string.
TEST(figures, drafts_that_came_behind_a_stop_string_are_waste) {
    Life life;
    life.record.queued(kOne, 1, true, 0);
    Event step;
    step.step = StepId{1};
    step.time = 60;
    step.rows = 6;
    step.rows_by_phase = {0, 0, 6};
    life.record.on(step);
    Event share = step;
    share.kind = EventKind::step_share;
    share.seq = kOne;
    share.phase = Phase::verify;
    share.position = 1;
    share.rejected = 1;
    share.hold = DraftHold::unlikely;
    life.record.on(share);
    life.token(kOne, 60);
    life.token(kOne, 60);
    life.record.closed(kOne);
    for (int i = 0; i < 3; i++) life.token(kOne, 60);
    life.record.done(Outcome::stop, 60);
    const Figures figures = figures_of(life.record);
    EXPECT_EQ(figures.output_tokens, 2u);
    EXPECT_EQ(figures.drafted, 5u);
    EXPECT_EQ(figures.accepted, 2u);
    EXPECT_EQ(figures.draft_holds[static_cast<size_t>(DraftHold::unlikely)], 1u);
    EXPECT_EQ(figures.receipt[Cause::own_decode], 30) << "its own row and two drafts, of six";
    EXPECT_EQ(figures.receipt[Cause::speculation_waste], 30);
}

// A step of 100 in which a draft model took 40: 8 of its 10 rows for this request, whose four guesses of it came to
// one.
TEST(figures, a_draft_models_time_is_due_to_those_it_drafted_for_and_waste_where_guesses_did_not_come) {
    Life life;
    life.record.queued(kOne, 1, true, 0);
    Event step;
    step.step = StepId{1};
    step.time = 100;
    step.rows = 6;
    step.rows_by_phase = {0, 1, 5};
    step.drafting = 40;
    step.drafting_rows = 10;
    life.record.on(step);
    Event share = step;
    share.kind = EventKind::step_share;
    share.seq = kOne;
    share.phase = Phase::verify;
    share.rows = 5;
    share.position = 1;
    share.rejected = 3;
    share.modelled = 4;
    share.drafting_rows = 8;
    life.record.on(share);
    life.token(kOne, 100);
    life.token(kOne, 100);
    life.record.done(Outcome::stop, 100);
    const Figures figures = figures_of(life.record);
    EXPECT_EQ(figures.drafted, 4u);
    EXPECT_EQ(figures.modelled, 4u);
    EXPECT_EQ(figures.modelled_accepted, 1u);
    EXPECT_EQ(figures.drafting_ns, 32);
    EXPECT_EQ(figures.receipt.total(), 100);
    EXPECT_EQ(figures.receipt[Cause::others_decode], 8 + 10) << "two of ten rows, and one of six of the rest";
    EXPECT_EQ(figures.receipt[Cause::own_decode], 20 + 20);
    EXPECT_EQ(figures.receipt[Cause::speculation_waste], 12 + 30);
}

TEST(figures, events_after_the_end_or_of_strangers_change_nothing) {
    Life life = streamed();
    const uint32_t before = figures_of(life.record).output_tokens;
    life.token(kOne, 400 * kMs);
    life.share(kOne, 400 * kMs, 410 * kMs, Phase::decode, 1, 100);
    EXPECT_EQ(figures_of(life.record).output_tokens, before);
    Life other;
    other.record.queued(kOne, 4, true, 0);
    other.token(kTwo, 10);
    other.record.done(Outcome::cancelled, 20);
    EXPECT_EQ(figures_of(other.record).output_tokens, 0u);
}

TEST(figures, percentiles_go_by_nearest_rank) {
    Life life;
    life.record.queued(kOne, 1, true, 0);
    Nanos now = 0;
    for (int i = 0; i <= 200; i++) life.record.flushed(kOne, 1, now += i);  // gaps 1 to 200
    life.record.done(Outcome::stop, now);
    const GapFigures gaps = *figures_of(life.record).gap_ns;
    EXPECT_EQ(gaps.p50, 100);
    EXPECT_EQ(gaps.p99, 198);
    EXPECT_EQ(gaps.max, 200);
}

TEST(timings, are_engine_times) {
    const Timings timings = timings_of(streamed().record);
    EXPECT_EQ(timings.cache_n, 20u);
    EXPECT_EQ(timings.prompt_n, 80u);
    EXPECT_DOUBLE_EQ(timings.prompt_ms, 100.0);
    EXPECT_DOUBLE_EQ(*timings.prompt_per_second, 800.0);
    EXPECT_EQ(timings.predicted_n, 5u);
    EXPECT_DOUBLE_EQ(timings.predicted_ms, 200.0);
    EXPECT_DOUBLE_EQ(*timings.predicted_per_second, 20.0) << "four tokens in 200 ms";
}

TEST(ollama, counts_the_whole_prompt_and_the_cached_part_beside_it) {
    const OllamaDurations durations = ollama_durations_of(streamed().record);
    EXPECT_EQ(durations.total_duration, 320 * kMs);
    EXPECT_EQ(durations.load_duration, 0);
    EXPECT_EQ(durations.prompt_eval_count, 100u);
    EXPECT_EQ(durations.prompt_eval_cached_count, 20u);
    EXPECT_EQ(durations.prompt_eval_duration, 100 * kMs);
    EXPECT_EQ(durations.eval_count, 5u);
    EXPECT_EQ(durations.eval_duration, 200 * kMs);
}

}  // namespace
}  // namespace cadans::metrics
