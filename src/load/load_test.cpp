#include <gtest/gtest.h>

#include <sstream>

#include "load/load_report.h"
#include "load/prompt_text.h"
#include "sim/load_spec.h"

namespace cadans::load {
namespace {

size_t words_in(const std::string& text) {
    std::istringstream in(text);
    size_t count = 0;
    for (std::string word; in >> word;) count++;
    return count;
}

TEST(prompt_text, has_as_many_words_as_its_tokens_ask_for) {
    sim::Workload workload;
    workload.arrivals = {{.prompt = 1000}, {.prompt = 1}};
    EXPECT_EQ(words_in(prompt_text(workload, 0, 1.25, 7)), 800U);
    EXPECT_EQ(words_in(prompt_text(workload, 1, 2.0, 7)), 1U);
}

TEST(prompt_text, rows_begin_alike_as_far_as_their_blocks_do) {
    sim::Workload workload;
    workload.block_tokens = 32;
    workload.arrivals = {{.prompt = 96, .blocks = {1, 2, 3}}, {.prompt = 100, .blocks = {1, 2, 9, 4}}, {.prompt = 96}};
    const std::string one = prompt_text(workload, 0, 1.0, 7), two = prompt_text(workload, 1, 1.0, 7);
    const size_t alike = static_cast<size_t>(std::ranges::mismatch(one, two).in1 - one.begin());
    const size_t words = words_in(one.substr(0, alike));
    EXPECT_GE(words, 64U);
    EXPECT_LE(words, 67U);
    EXPECT_NE(one, prompt_text(workload, 2, 1.0, 7));
    EXPECT_EQ(one, prompt_text(workload, 0, 1.0, 7));
    EXPECT_NE(one, prompt_text(workload, 0, 1.0, 8));
}

Answer answer_of(Nanos sent, std::vector<Nanos> pieces) {
    Answer answer;
    answer.sent = sent;
    answer.status = 200;
    for (const Nanos at : pieces) {
        if (answer.last)
            answer.gaps.push_back(at - *answer.last);
        else
            answer.first = at;
        answer.last = at;
        answer.pieces++;
        answer.bytes += 4;
    }
    answer.first_bytes = 4;
    answer.end = pieces.back();
    answer.output_tokens = answer.pieces;
    return answer;
}

TEST(load_report, figures_are_those_of_answers_that_are_whole) {
    constexpr Nanos kMs = kNanosPerMilli;
    Played played;
    played.answers = {
        answer_of(1, {100 * kMs + 1, 150 * kMs + 1, 400 * kMs + 1}), answer_of(1, {20 * kMs + 1}), {}, {}};
    played.answers[2].sent = played.answers[3].sent = 1;
    played.answers[2].status = 429;
    played.answers[2].error = "busy";
    played.answers[3].error = "the line broke";
    played.late = {0, 3, 2, 1};
    played.span = 2 * kNanosPerSecond;
    const LoadReport report = report_of(played, 200 * kMs);
    EXPECT_EQ(report.requests, 4U);
    EXPECT_EQ(report.finished, 2U);
    EXPECT_EQ(report.refused, 1U);
    EXPECT_EQ(report.failed, 1U);
    EXPECT_EQ(report.ttft->max, 100 * kMs);
    EXPECT_EQ(report.ttft->p50, 20 * kMs);
    EXPECT_EQ(report.gap->max, 250 * kMs);
    EXPECT_EQ(report.output_tokens, 4U);
    EXPECT_DOUBLE_EQ(report.stalls_per_1000, 250.0);
    EXPECT_NEAR(report.output_tokens_per_second->p50, 2 / 0.3, 1e-9);
    EXPECT_DOUBLE_EQ(report.finished_per_second, 1.0);
    EXPECT_EQ(report.late->max, 3);
    EXPECT_EQ(report.errors.size(), 2U);
    EXPECT_FALSE(report.prompt);
}

TEST(load_report, tokens_that_came_with_the_first_piece_took_no_time) {
    constexpr Nanos kMs = kNanosPerMilli;
    Answer held = answer_of(1, {1000 * kMs, 1001 * kMs});
    held.output_tokens = 64;
    Played played;
    played.answers = {held};
    played.late = {0};
    EXPECT_FALSE(report_of(played, kMs).output_tokens_per_second) << "one gap is no rate";
    Answer burst = answer_of(1, {1000 * kMs, 1100 * kMs, 1200 * kMs});
    burst.output_tokens = 64;
    burst.first_bytes = 310;
    burst.bytes = 320;  // 62 of its tokens came first
    played.answers = {burst};
    EXPECT_NEAR(report_of(played, kMs).output_tokens_per_second->p50, 2 / 0.2, 1e-9);
}

TEST(load_report, nothing_is_no_number) {
    const LoadReport report = report_of({}, 1);
    EXPECT_FALSE(report.ttft || report.gap || report.late || report.output_tokens_per_second);
    EXPECT_EQ(report.stalls_per_1000, 0);
}

}  // namespace
}  // namespace cadans::load
