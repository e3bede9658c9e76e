#include "metrics/receipt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/random.h"

namespace cadans::metrics {
namespace {

constexpr SeqId kSeq{1};

Event step(uint64_t id, Nanos begin, Nanos end, uint32_t prefill, uint32_t decode) {
    Event event;
    event.kind = EventKind::step_begin;
    event.step = StepId{id};
    event.begin = begin;
    event.time = end;
    event.rows_by_phase = {prefill, decode, 0};
    return event;
}

Event share(uint64_t id, Nanos begin, Nanos end, Phase phase, uint32_t rows, uint32_t position) {
    Event event;
    event.kind = EventKind::step_share;
    event.seq = kSeq;
    event.step = StepId{id};
    event.begin = begin;
    event.time = end;
    event.phase = phase;
    event.rows = rows;
    event.position = position;
    return event;
}

Event of(EventKind kind, Nanos time) {
    Event event;
    event.kind = kind;
    event.seq = kSeq;
    event.time = time;
    return event;
}

TEST(receipt, waiting_for_masks_is_a_cause_of_its_own_for_all_in_the_step) {
    for (const Phase phase : {Phase::decode, Phase::prefill}) {
        RequestRecord record(RequestId{1}, 100);
        record.queued(kSeq, 1, true, 100);
        Event slow = step(1, 100, 200, phase == Phase::prefill ? 4 : 3, 1);
        slow.mask = 40;
        record.on(slow);
        record.on(share(1, 100, 200, phase, phase == Phase::prefill ? 4 : 1, 1));
        record.on(of(EventKind::token, 200));
        record.on(of(EventKind::finished, 200));
        record.done(Outcome::stop, 200);
        const Receipt receipt = make_receipt(record);
        EXPECT_EQ(receipt[Cause::mask], 40);
        EXPECT_EQ(receipt.total(), 100);
        const Receipt half = make_receipt_until(record, 150);
        EXPECT_EQ(half[Cause::mask], 20) << "in proportion";
        EXPECT_EQ(half.total(), 50);
    }
}

TEST(receipt, a_quiet_request_is_parse_tokenize_queue_and_steps) {
    RequestRecord record(RequestId{1}, 100);
    record.parsed(110);
    record.tokenized(130);
    record.queued(kSeq, 8, true, 131);
    record.on(step(1, 150, 250, 8, 0));
    record.on(share(1, 150, 250, Phase::prefill, 8, 8));
    record.on(of(EventKind::token, 250));
    record.made_text({251, 253});
    record.flushed(kSeq, 1, 253);
    record.on(step(2, 255, 275, 0, 1));
    record.on(share(2, 255, 275, Phase::decode, 1, 8));
    record.on(of(EventKind::token, 275));
    record.on(of(EventKind::finished, 275));
    record.made_text({276, 279});
    record.flushed(kSeq, 1, 279);
    record.done(Outcome::length, 280);
    const Receipt receipt = make_receipt(record);
    EXPECT_EQ(receipt[Cause::parse], 10);
    EXPECT_EQ(receipt[Cause::tokenize], 20);
    EXPECT_EQ(receipt[Cause::queue], 19);
    EXPECT_EQ(receipt[Cause::own_prefill], 100);
    EXPECT_EQ(receipt[Cause::own_decode], 20);
    EXPECT_EQ(receipt[Cause::sample_and_text], 2 + 3);
    EXPECT_EQ(receipt[Cause::scheduler], 1 + 1 + 2 + 1 + 1);
    EXPECT_EQ(receipt.total(), 180);
}

TEST(receipt, a_mixed_step_is_shared_by_rows_and_rounding_goes_to_the_largest) {
    RequestRecord record(RequestId{1}, 0);
    record.queued(kSeq, 1, true, 0);
    record.on(step(1, 0, 100, 4, 3));  // mine is one of the three decode rows
    record.on(share(1, 0, 100, Phase::decode, 1, 1));
    record.done(Outcome::stop, 100);
    const Receipt receipt = make_receipt(record);
    EXPECT_EQ(receipt[Cause::own_decode], 14);      // 100 / 7
    EXPECT_EQ(receipt[Cause::others_decode], 28);   // 86 * 2 / 6
    EXPECT_EQ(receipt[Cause::others_prefill], 58);  // 86 * 4 / 6, and what rounding left
    EXPECT_EQ(receipt.total(), 100);
}

TEST(receipt, a_step_without_me_is_theirs_from_my_first_row_on_and_queue_before) {
    RequestRecord record(RequestId{1}, 0);
    record.queued(kSeq, 4, true, 0);
    record.on(step(1, 0, 10, 0, 2));
    record.on(step(2, 10, 20, 4, 0));
    record.on(share(2, 10, 20, Phase::prefill, 4, 4));
    record.on(step(3, 20, 50, 20, 10));
    record.done(Outcome::cancelled, 50);
    const Receipt receipt = make_receipt(record);
    EXPECT_EQ(receipt[Cause::queue], 10);
    EXPECT_EQ(receipt[Cause::own_prefill], 10);
    EXPECT_EQ(receipt[Cause::others_prefill], 20);
    EXPECT_EQ(receipt[Cause::others_decode], 10);
}

TEST(receipt, while_preempted_others_steps_are_not_to_blame) {
    RequestRecord record(RequestId{1}, 0);
    record.queued(kSeq, 4, true, 0);
    record.on(step(1, 0, 10, 4, 0));
    record.on(share(1, 0, 10, Phase::prefill, 4, 4));
    record.on(of(EventKind::preempted, 12));
    record.on(step(2, 12, 40, 0, 5));
    record.on(of(EventKind::resumed, 41));
    record.on(step(3, 42, 62, 4, 0));
    Event again = share(3, 42, 62, Phase::prefill, 4, 4);
    again.recomputed = 3;
    record.on(again);
    record.done(Outcome::stop, 62);
    const Receipt receipt = make_receipt(record);
    EXPECT_EQ(receipt[Cause::preempted], 29);
    EXPECT_EQ(receipt[Cause::others_decode], 0);
    EXPECT_EQ(receipt[Cause::recompute], 15);
    EXPECT_EQ(receipt[Cause::own_prefill], 10 + 5);
    EXPECT_EQ(receipt[Cause::scheduler], 3);
}

TEST(receipt, a_slow_client_and_a_cold_model_are_named) {
    RequestRecord record(RequestId{1}, 0);
    record.parsed(1);
    record.waited_for_load({1, 500});
    record.tokenized(510);
    record.queued(kSeq, 1, true, 510);
    record.on(step(1, 520, 530, 0, 1));
    record.on(share(1, 520, 530, Phase::decode, 1, 1));
    record.waited_for_client({530, 600});
    record.done(Outcome::stop, 600);
    const Receipt receipt = make_receipt(record);
    EXPECT_EQ(receipt[Cause::load], 499);
    EXPECT_EQ(receipt[Cause::tokenize], 10);
    EXPECT_EQ(receipt[Cause::client_slow], 70);
    EXPECT_EQ(receipt.total(), 600);
}

TEST(receipt, one_refused_before_it_was_read_is_all_parse) {
    RequestRecord record(RequestId{1}, 7);
    record.done(Outcome::refused, 17);
    const Receipt receipt = make_receipt(record);
    EXPECT_EQ(receipt[Cause::parse], 10);
    EXPECT_EQ(receipt.total(), 10);
}

TEST(receipt, rejected_drafts_are_waste) {
    RequestRecord record(RequestId{1}, 0);
    record.queued(kSeq, 1, true, 0);
    Event whole = step(1, 0, 40, 0, 0);
    whole.rows_by_phase = {0, 0, 4};
    record.on(whole);
    Event mine = share(1, 0, 40, Phase::verify, 4, 1);
    mine.rejected = 3;
    record.on(mine);
    record.done(Outcome::stop, 40);
    EXPECT_EQ(make_receipt(record)[Cause::own_decode], 10);
    EXPECT_EQ(make_receipt(record)[Cause::speculation_waste], 30);
}

TEST(receipt, where_more_rows_cost_nothing_extra_others_share_by_their_number) {
    constexpr RowCost floor{.weights = 1000, .row = 0};
    RequestRecord record(RequestId{1}, 0);
    record.queued(kSeq, 1, true, 0);
    record.on(step(1, 0, 10, 0, 1));
    record.on(share(1, 0, 10, Phase::decode, 1, 1));
    record.on(step(2, 10, 20, 3, 2));
    record.done(Outcome::stop, 20);
    const Receipt receipt = make_receipt(record, floor);
    EXPECT_EQ(receipt[Cause::own_decode], 10);
    EXPECT_EQ(receipt[Cause::others_prefill], 6);
    EXPECT_EQ(receipt[Cause::others_decode], 4);
}

// A word beside a prompt of 90 rows: alone it would have waited for the weights, so most of the step is its own, and
// only what the prompt adds is the prompt's.
TEST(receipt, by_the_machines_cost_a_word_pays_for_the_weights_and_the_prompt_for_what_it_adds) {
    constexpr RowCost cost{.weights = 60, .row = 1};
    RequestRecord record(RequestId{1}, 0);
    record.queued(kSeq, 1, true, 0);
    record.on(step(1, 0, 910, 90, 1));
    record.on(share(1, 0, 910, Phase::decode, 1, 1));
    record.done(Outcome::stop, 910);
    const Receipt fitted = make_receipt(record, cost);
    EXPECT_EQ(fitted[Cause::own_decode], 600);
    EXPECT_EQ(fitted[Cause::others_prefill], 310);
    EXPECT_EQ(make_receipt(record)[Cause::own_decode], 10);  // by rows, nearly all of it would be the prompt's
}

/// A request with anything in it, in any order and overlap that a short life of ticks allows.
class RandomRequest {
  public:
    explicit RandomRequest(uint64_t seed) : seed_(seed), record(RequestId{1}, 10) {
        Nanos now = 10 + tick(20);
        if (chance(90)) record.parsed(now);
        now += tick(20);
        for (auto wait :
             {&RequestRecord::waited_for_load, &RequestRecord::waited_for_restore, &RequestRecord::waited_for_transfer,
              &RequestRecord::waited_for_client, &RequestRecord::made_text, &RequestRecord::made_mask}) {
            while (chance(30)) (record.*wait)(span());
        }
        if (chance(90)) record.tokenized(now);
        now += tick(5);
        if (chance(90)) {
            record.queued(kSeq, 20, true, now);
            for (uint64_t id = 1; chance(90); id++) now = one_step(id, now);
        }
        end = now + tick(30);
        record.done(Outcome::stop, end);
    }

  private:
    uint64_t draw(uint64_t below) { return mix64(seed_ * 7919 + ++draws_) % below; }
    bool chance(uint64_t percent) { return draw(100) < percent; }
    Nanos tick(uint64_t below) { return static_cast<Nanos>(draw(below)); }
    Interval span() {
        const Nanos begin = tick(150);
        return {begin, begin + tick(40)};
    }

    Nanos one_step(uint64_t id, Nanos now) {
        const Nanos begin = now + tick(4), finish = begin + tick(30);
        Event whole = step(id, begin, finish, static_cast<uint32_t>(draw(20)), static_cast<uint32_t>(1 + draw(5)));
        whole.rows_by_phase[2] = static_cast<uint32_t>(draw(8));
        record.on(whole);
        if (!preempted_ && chance(60)) {
            const auto phase = static_cast<Phase>(draw(3));
            const uint32_t room = whole.rows_by_phase[static_cast<uint8_t>(phase)];
            if (room > 0) {
                const auto rows = static_cast<uint32_t>(1 + draw(room));
                Event mine = share(id, begin, finish, phase, rows, static_cast<uint32_t>(draw(25)));
                mine.recomputed = static_cast<uint32_t>(draw(rows + 1));
                mine.rejected = phase == Phase::verify ? static_cast<uint32_t>(draw(rows)) : 0;
                record.on(mine);
                if (chance(70)) record.on(of(EventKind::token, finish));
                if (chance(50)) record.flushed(kSeq, 1, finish + tick(10));
            }
        }
        if (chance(15)) {
            record.on(of(preempted_ ? EventKind::resumed : EventKind::preempted, finish + 1));
            preempted_ = !preempted_;
        }
        return finish + 2;
    }

    uint64_t seed_;
    uint64_t draws_ = 0;
    bool preempted_ = false;

  public:
    RequestRecord record;
    Nanos end = 0;
};

bool holds(const std::vector<Interval>& spans, Nanos at) {
    return std::any_of(spans.begin(), spans.end(), [&](const Interval& s) { return s.begin <= at && at < s.end; });
}

/// The rule read literally, instant by instant; own and others' steps are one cause each here.
struct ByInstant {
    explicit ByInstant(const RequestRecord& r) {
        for (Nanos at = r.accepted(); at < *r.done(); at++) {
            bool mine = false, others = false;
            for (const StepPart& step : r.steps()) {
                if (at < step.begin || at >= step.end) continue;
                (step.mine == std::array<uint32_t, kPhases>{} ? others : mine) = true;
            }
            const bool runnable = r.first_scheduled() && *r.first_scheduled() <= at && !holds(r.preemptions(), at) &&
                                  !holds(r.restores(), at) && !holds(r.transfers(), at) && !holds(r.slow(), at);
            const Nanos done = *r.done();
            const Nanos queued = r.queued().value_or(done), first = r.first_scheduled().value_or(done);
            const Nanos tokenized = r.tokenized().value_or(queued), parsed = r.parsed().value_or(tokenized);
            if (mine) {
                own++;
            } else if (others && runnable) {
                theirs++;
            } else {
                rest[holds(r.transfers(), at)     ? Cause::transfer
                     : holds(r.restores(), at)    ? Cause::restore
                     : holds(r.loads(), at)       ? Cause::load
                     : holds(r.preemptions(), at) ? Cause::preempted
                     : holds(r.slow(), at)        ? Cause::client_slow
                     : holds(r.texts(), at)       ? Cause::sample_and_text
                     : holds(r.masks(), at)       ? Cause::mask
                     : at < parsed                ? Cause::parse
                     : at < tokenized             ? Cause::tokenize
                     : queued <= at && at < first ? Cause::queue
                                                  : Cause::scheduler]++;
            }
        }
    }
    Nanos own = 0, theirs = 0;
    Receipt rest;
};

// Goal: the parts are never negative, sum to the whole, and are those of the rule.
// Method: random requests with overlapping everything, against the rule applied to each nanosecond.
TEST(receipt, of_any_request_sums_exactly_and_agrees_with_the_rule_at_every_instant) {
    const char* asked = std::getenv("CADANS_SEEDS");
    const uint64_t count = asked == nullptr ? 20'000 : std::strtoull(asked, nullptr, 10);
    Receipt seen;
    for (uint64_t seed = 0; seed < count; seed++) {
        const RandomRequest request(seed);
        const Receipt receipt = make_receipt(request.record);
        ASSERT_EQ(receipt.total(), request.end - 10) << "seed " << seed;
        for (uint32_t cause = 0; cause < kCauses; cause++) {
            ASSERT_GE(receipt.ns[cause], 0) << kCauseNames[cause] << " seed " << seed;
            seen.ns[cause] += receipt.ns[cause];
        }
        if (seed >= 5000) continue;  // the slow way for some, the sum for all
        const ByInstant slow(request.record);
        const Nanos steps = slow.own + slow.theirs;
        Nanos in_steps = 0;
        for (const Cause cause : {Cause::own_prefill, Cause::own_decode, Cause::speculation_waste, Cause::recompute,
                                  Cause::others_prefill, Cause::others_decode}) {
            in_steps += receipt[cause];
        }
        ASSERT_EQ(in_steps, steps) << "seed " << seed;
        for (uint32_t cause = 0; cause < kCauses; cause++) {
            const auto which = static_cast<Cause>(cause);
            if (which >= Cause::own_prefill && which <= Cause::recompute) continue;
            ASSERT_EQ(receipt.ns[cause], slow.rest.ns[cause]) << kCauseNames[cause] << " seed " << seed;
        }
    }
    for (uint32_t cause = 0; cause < kCauses; cause++) EXPECT_GT(seen.ns[cause], 0) << kCauseNames[cause];
}

}  // namespace
}  // namespace cadans::metrics
