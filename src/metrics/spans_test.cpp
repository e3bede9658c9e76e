#include "metrics/spans.h"

#include <gtest/gtest.h>

namespace cadans::metrics {
namespace {

constexpr const char* kTrace = "0af7651916cd43dd8448eb211c80319c";
constexpr const char* kSpan = "b7ad6b7169203331";

TEST(traceparent, is_read_as_the_recommendation_says) {
    const auto parent = read_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    ASSERT_TRUE(parent);
    EXPECT_EQ(parent->trace_id, kTrace);
    EXPECT_EQ(parent->span_id, kSpan);
    EXPECT_TRUE(parent->sampled);
    EXPECT_FALSE(read_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")->sampled);
    EXPECT_TRUE(read_traceparent("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0b-what-comes-later"));
}

TEST(traceparent, a_malformed_one_is_none) {
    for (const char* bad : {"", "00", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
                            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
                            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
                            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333-011",
                            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x"})
        EXPECT_FALSE(read_traceparent(bad)) << bad;
}

Event event(EventKind kind, Nanos begin, Nanos time) {
    Event out;
    out.kind = kind;
    out.seq = SeqId{1};
    out.begin = begin;
    out.time = time;
    return out;
}

TEST(phase_spans, are_the_phases_in_order) {
    RequestRecord record(RequestId{1}, 100);
    record.parsed(110);
    record.tokenized(125);
    record.queued(SeqId{1}, 4, true, 126);
    record.on(event(EventKind::step_begin, 150, 200));
    Event share = event(EventKind::step_share, 150, 200);
    share.rows = share.position = 4;
    record.on(share);
    record.on(event(EventKind::token, 150, 200));
    record.on(event(EventKind::token, 210, 260));
    record.done(Outcome::stop, 270);
    std::string told;
    for (const Span& span : phase_spans(record, figures_of(record)))
        told += span.name + " " + std::to_string(span.begin) + "-" + std::to_string(span.end) + "; ";
    EXPECT_EQ(told,
              "parse 100-110; tokenize 110-125; queue 126-150; prefill 150-200; decode 200-260; writing 260-270; ");
}

TEST(phase_spans, of_one_that_left_in_the_queue_end_there) {
    RequestRecord record(RequestId{1}, 100);
    record.parsed(110);
    record.queued(SeqId{1}, 4, true, 126);
    record.done(Outcome::cancelled, 500);
    const auto spans = phase_spans(record, figures_of(record));
    ASSERT_EQ(spans.size(), 2U);
    EXPECT_EQ(spans.back().name, "queue");
    EXPECT_EQ(spans.back().end, 500);
}

}  // namespace
}  // namespace cadans::metrics
