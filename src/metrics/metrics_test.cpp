#include "metrics/metrics.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "metrics/exposition.h"

namespace cadans::metrics {
namespace {

constexpr Nanos kMs = kNanosPerMilli;

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

bool has_line(const std::string& text, const std::string& wanted) {
    for (const std::string& line : lines_of(text)) {
        if (line == wanted) return true;
    }
    return false;
}

Now with_pages() {
    Now now;
    now.occupancy = {2,    3, 4000,
                     9000, 0, {{ModelId{0}, GroupId{0}, 100, 40, 50}, {ModelId{0}, GroupId{1}, 10, 0, 500}}};
    now.model_names = {"a \"quoted\\ name\nin two lines"};
    now.engine_restarts = 1;
    return now;
}

RequestRecord finished_request(bool cold) {
    RequestRecord record(RequestId{1}, 0);
    if (cold) record.waited_for_load({0, 5 * kMs});
    record.queued(SeqId{1}, 4, true, 10 * kMs);
    Event event;
    event.kind = EventKind::step_begin;
    event.begin = 20 * kMs;
    event.time = 50 * kMs;
    event.rows_by_phase = {4, 0, 0};
    record.on(event);
    event.kind = EventKind::step_share;
    event.seq = SeqId{1};
    event.rows = 4;
    event.position = 4;
    record.on(event);
    event.kind = EventKind::token;
    for (const Nanos end : {50 * kMs, 80 * kMs, 400 * kMs}) {
        event.time = end;
        record.on(event);
        record.flushed(SeqId{1}, 1, end);
    }
    record.done(Outcome::stop, 400 * kMs);
    return record;
}

TEST(histogram, counts_a_span_in_the_first_bucket_that_holds_it) {
    static constexpr Nanos kBounds[] = {10, 20};
    Histogram histogram(kBounds);
    for (const Nanos span : {0, 10, 11, 20, 21, 1000}) histogram.observe(span);
    const auto snapshot = histogram.snapshot();
    EXPECT_EQ(snapshot.cumulative, (std::vector<uint64_t>{2, 4, 6}));
    EXPECT_EQ(snapshot.sum, 1062);
}

TEST(histogram, loses_nothing_between_threads) {
    static constexpr Nanos kBounds[] = {10, 20};
    Histogram histogram(kBounds);
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; t++) {
            threads.emplace_back([&] {
                for (int i = 0; i < 5000; i++) histogram.observe(i % 30);
            });
        }
        for (int i = 0; i < 50; i++) {
            const auto seen = histogram.snapshot();
            EXPECT_LE(seen.cumulative[0], seen.cumulative[2]);
        }
    }
    EXPECT_EQ(histogram.snapshot().cumulative.back(), 20'000u);
}

TEST(exposition, writes_seconds_exactly) {
    EXPECT_EQ(seconds_text(0), "0");
    EXPECT_EQ(seconds_text(1'500'000'000), "1.5");
    EXPECT_EQ(seconds_text(1), "0.000000001");
    EXPECT_EQ(seconds_text(-250'000'000), "-0.25");
    EXPECT_EQ(seconds_text(40 * kNanosPerSecond), "40");
}

TEST(exposition, escapes_what_would_break_a_line) {
    Exposition page;
    page.family("x", Exposition::Type::gauge, "Help.");
    page.sample({{"name", "a\"b\\c\nd"}}, 1);
    EXPECT_EQ(page.text(), "# HELP x Help.\n# TYPE x gauge\nx{name=\"a\\\"b\\\\c\\nd\"} 1\n");
}

TEST(exposition_death, a_family_opened_twice_is_our_bug) {
    Exposition page;
    page.family("x", Exposition::Type::gauge, "Help.");
    EXPECT_EXIT(page.family("x", Exposition::Type::gauge, "Help."), testing::ExitedWithCode(70), "opened once");
}

TEST(metrics, a_request_that_is_done_is_counted_at_once) {
    Metrics metrics(200 * kMs);
    const RequestRecord record = finished_request(false);
    metrics.count(record, figures_of(record));
    metrics.count_refused();
    const std::string page = metrics.exposition(with_pages());
    EXPECT_TRUE(has_line(page, "cadans_requests_total{outcome=\"stop\"} 1"));
    EXPECT_TRUE(has_line(page, "cadans_requests_total{outcome=\"refused\"} 1"));
    EXPECT_TRUE(has_line(page, "cadans_prompt_tokens_total{source=\"computed\"} 4"));
    EXPECT_TRUE(has_line(page, "cadans_prompt_tokens_total{source=\"cached\"} 0"));
    EXPECT_TRUE(has_line(page, "cadans_output_tokens_total 3"));
    EXPECT_TRUE(has_line(page, "cadans_stalls_total 1")) << "320 ms is over 200 ms";
    EXPECT_TRUE(has_line(page, "cadans_engine_restarts_total 1"));
    EXPECT_TRUE(has_line(page, "cadans_token_gap_seconds_count 2"));
    EXPECT_TRUE(has_line(page, "cadans_token_gap_seconds_sum 0.35"));
    EXPECT_TRUE(has_line(page, "cadans_time_to_first_token_seconds_bucket{start=\"warm\",le=\"0.06\"} 1"));
    EXPECT_TRUE(has_line(page, "cadans_time_to_first_token_seconds_bucket{start=\"warm\",le=\"0.04\"} 0"));
    EXPECT_TRUE(has_line(page, "cadans_request_seconds_count{start=\"warm\"} 1"));
    EXPECT_TRUE(has_line(page, "cadans_request_cause_seconds_total{cause=\"queue\"} 0.01"));
    EXPECT_TRUE(has_line(page, "cadans_sequences_running 2"));
    EXPECT_TRUE(has_line(page, "cadans_page_bytes_budget 9000"));
}

TEST(metrics, cold_and_warm_are_never_mixed) {
    Metrics metrics(200 * kMs);
    const RequestRecord record = finished_request(true);
    metrics.count(record, figures_of(record));
    const std::string page = metrics.exposition({});
    EXPECT_TRUE(has_line(page, "cadans_load_seconds_count{start=\"cold\"} 1"));
    EXPECT_TRUE(has_line(page, "cadans_load_seconds_count{start=\"warm\"} 0"));
    EXPECT_TRUE(has_line(page, "cadans_request_seconds_count{start=\"warm\"} 0"));
}

// What a Prometheus parser insists on, line by line.
TEST(metrics, the_page_is_well_formed) {
    Metrics metrics(200 * kMs);
    const RequestRecord record = finished_request(false);
    metrics.count(record, figures_of(record));
    const std::string page = metrics.exposition(with_pages());
    EXPECT_EQ(page.back(), '\n');
    const std::regex sample(
        R"re(([a-z_]+)(\{[a-z_]+="([^"\\]|\\["\\n])*"(,[a-z_]+="([^"\\]|\\["\\n])*")*\})? [0-9.]+)re");
    std::set<std::string> families, samples;
    std::string family, type;
    for (const std::string& line : lines_of(page)) {
        std::istringstream words(line);
        std::string hash, keyword, name;
        words >> hash >> keyword >> name;
        if (hash == "#" && keyword == "HELP") {
            EXPECT_TRUE(families.insert(name).second) << name;
            family = name;
            continue;
        }
        if (hash == "#") {
            ASSERT_EQ(keyword, "TYPE");
            EXPECT_EQ(name, family) << "TYPE follows HELP";
            words >> type;
            EXPECT_EQ(type == "counter", family.ends_with("_total")) << family;
            continue;
        }
        std::smatch parts;
        ASSERT_TRUE(std::regex_match(line, parts, sample)) << line;
        EXPECT_TRUE(samples.insert(line.substr(0, line.rfind(' '))).second) << "twice: " << line;
        std::string base = parts[1];
        if (type == "histogram") base = std::regex_replace(base, std::regex("_(bucket|sum|count)$"), "");
        EXPECT_EQ(base, family) << "a sample stands in its own family";
    }
}

TEST(metrics, every_family_is_described_in_the_docs) {
    std::ifstream file(METRICS_PAGE);
    ASSERT_TRUE(file) << METRICS_PAGE;
    std::stringstream text;
    text << file.rdbuf();
    const std::string docs = text.str();
    Metrics metrics(200 * kMs);
    std::set<std::string> exposed;
    for (const std::string& line : lines_of(metrics.exposition(with_pages()))) {
        if (line.rfind("# TYPE ", 0) == 0) exposed.insert(line.substr(7, line.find(' ', 7) - 7));
    }
    EXPECT_GT(exposed.size(), 20u);
    for (const std::string& name : exposed) EXPECT_NE(docs.find("`" + name + "`"), std::string::npos) << name;
    const std::regex documented("`(cadans_[a-z_]+)`");
    for (std::sregex_iterator at(docs.begin(), docs.end(), documented), end; at != end; ++at) {
        EXPECT_TRUE(exposed.count((*at)[1])) << "described but not exposed: " << (*at)[1];
    }
    for (const char* cause : kCauseNames)
        EXPECT_NE(docs.find("`" + std::string(cause) + "`"), std::string::npos) << cause;
}

}  // namespace
}  // namespace cadans::metrics
