#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "history/store.h"
#include "history/summary.h"

namespace cadans::history {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kNow = 1'790'000'000'000;
constexpr int64_t kDayMs = 86'400'000;

/// A folder of its own, gone afterwards.
class Folder {
  public:
    Folder() {
        std::string name = (fs::temp_directory_path() / "cadans-history-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    ~Folder() { fs::remove_all(path_); }
    std::string file() const { return (path_ / "state" / "history.db").string(); }

  private:
    fs::path path_;
};

FinishedRequest request(int number, int64_t unix_ms = kNow) {
    FinishedRequest r;
    r.id = "chatcmpl-" + std::to_string(number);
    r.unix_ms = unix_ms;
    r.model = number % 2 == 0 ? "even" : "odd";
    r.outcome = "stop";
    r.priority = "normal";
    r.prompt_tokens = 100;
    r.computed_tokens = 100;
    r.output_tokens = 7;
    r.total_ns = 1'000'000 * (number + 1);
    r.longest_wait = "own_prefill";
    r.record = "{\"id\":\"" + r.id + "\"}";
    return r;
}

std::unique_ptr<Store> open(const std::string& path, StoreLimits limits = {}, int64_t now = kNow) {
    auto store = Store::open(path, limits, now);
    EXPECT_TRUE(store) << store.error().message;
    return *std::move(store);
}

TEST(gap_counts, a_percentile_is_within_a_sixteenth_above_the_gap_it_stands_for) {
    std::mt19937_64 random(7);
    std::vector<Nanos> gaps;
    GapCounts counts;
    for (int i = 0; i < 20'000; i++) gaps.push_back(static_cast<Nanos>(random() >> (random() % 50 + 13)));
    counts.add(gaps);
    std::sort(gaps.begin(), gaps.end());
    for (const uint32_t percent : {1U, 50U, 90U, 99U, 100U}) {
        const Nanos exact = gaps[(gaps.size() * percent + 99) / 100 - 1];
        EXPECT_GE(*counts.percentile(percent), exact);
        EXPECT_LE(*counts.percentile(percent), exact + exact / 16);
    }
    EXPECT_EQ(counts.max(), gaps.back());
}

TEST(gap_counts, its_text_reads_back_and_other_text_is_empty) {
    GapCounts counts;
    for (const Nanos gap : {Nanos{0}, Nanos{15}, Nanos{16}, Nanos{61'000'000}, Nanos{INT64_MAX}}) counts.add(gap);
    const GapCounts back = GapCounts::of(counts.text());
    EXPECT_EQ(back.text(), counts.text());
    EXPECT_EQ(back.count(), 5U);
    EXPECT_EQ(back.max(), INT64_MAX);
    for (const char* bad : {"", "x", "5 1", "5 1:", "5 99999:1", "-1 2:3", "5 1:2x"})
        EXPECT_EQ(GapCounts::of(bad).count(), 0U) << bad;
}

TEST(store, gives_back_what_it_was_given) {
    const Folder folder;
    FinishedRequest given = request(1);
    given.cold = given.streamed = true;
    given.client = "anna";
    given.ttft_ns = 5;
    given.prompt_tokens_per_second = 845.5;
    given.gap_max_ns = 61;
    given.stalls = 3;
    given.gaps.add(61);
    {
        auto store = open(folder.file());
        EXPECT_TRUE(store->add(given));
    }
    auto store = open(folder.file());
    EXPECT_EQ(store->note(), "");
    EXPECT_EQ(*store->find(given.id), given.record);
    EXPECT_EQ(*store->newest(), given.record);
    EXPECT_EQ(store->find("nobody").error().code, ErrorCode::not_found);
    const auto rows = store->rows({}, 10);
    ASSERT_EQ(rows->size(), 1U);
    const FinishedRequest& row = rows->front();
    EXPECT_EQ(row.ttft_ns, given.ttft_ns);
    EXPECT_EQ(row.prompt_ns, std::nullopt);
    EXPECT_EQ(row.prompt_tokens_per_second, given.prompt_tokens_per_second);
    EXPECT_TRUE(row.cold && row.streamed);
    EXPECT_EQ(row.client, "anna");
    EXPECT_EQ(row.gaps.max(), 61);
    EXPECT_EQ(row.record, "");
    EXPECT_EQ(*store->kept_since(), kNow);
}

TEST(store, only_its_owner_may_read_the_file) {
    const Folder folder;
    open(folder.file());
    struct stat info {};
    ASSERT_EQ(::stat(folder.file().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600U);
}

std::string ids(const Result<std::span<const FinishedRequest>>& rows) {
    std::string out;
    for (const FinishedRequest& row : *rows) out += row.id.substr(9) + " ";
    return out;
}

TEST(store, rows_are_chosen_by_time_and_model) {
    const Folder folder;
    auto store = open(folder.file());
    for (int i = 0; i < 10; i++) ASSERT_TRUE(store->add(request(i, kNow + i)));
    EXPECT_EQ(ids(store->rows({kNow + 2, kNow + 5, ""}, 10)), "2 3 4 ");
    EXPECT_EQ(ids(store->rows({kNow, kNow + 100, ""}, 3)), "7 8 9 ");
    EXPECT_EQ(ids(store->rows({kNow, kNow + 7, "even"}, 2)), "4 6 ");
    EXPECT_EQ(ids(store->rows({kNow, kNow + 100, "neither"}, 3)), "");
    const auto newest = store->newest_rows(2);
    EXPECT_EQ(newest->front().id + newest->back().id, "chatcmpl-9chatcmpl-8");
}

TEST(store, rows_in_memory_are_those_of_the_file) {
    const Folder folder;
    auto store = open(folder.file());
    ASSERT_TRUE(store->add(request(1, kNow)));
    EXPECT_EQ(ids(store->rows({}, 10)), "1 ");  // from now on they are in memory
    ASSERT_TRUE(store->add(request(3, kNow + 20)));
    ASSERT_TRUE(store->add(request(2, kNow + 10)));  // ended later, came earlier
    EXPECT_EQ(ids(store->rows({}, 10)), "1 2 3 ");
    FinishedRequest again = request(2, kNow + 30);
    again.record = "a record";
    ASSERT_TRUE(store->add(again));
    EXPECT_EQ(ids(store->rows({}, 10)), "1 3 2 ");
    EXPECT_EQ(store->rows({}, 10)->back().record, "");
    {
        auto other = open(folder.file());
        ASSERT_TRUE(other->add(request(4, kNow + 40)));
    }
    EXPECT_EQ(ids(store->rows({}, 10)), "1 3 2 4 ") << "what another process has added";
    ASSERT_TRUE(store->prune(kNow + 10 + 30 * kDayMs));
    EXPECT_EQ(ids(store->rows({}, 10)), "3 2 4 ") << "what is too old";
}

TEST(kept_rows, are_forgotten_when_nobody_asks) {
    KeptRows kept;
    kept.load({request(0, kNow)});
    for (uint32_t i = 0; i < KeptRows::kForgottenAfter; i++) kept.add(request(1, kNow + 1));
    EXPECT_EQ(kept.of({}, 10).size(), 2U);
    for (uint32_t i = 0; i <= KeptRows::kForgottenAfter; i++) kept.add(request(1, kNow + 1));
    EXPECT_FALSE(kept.loaded());
}

TEST(summary, first_rows_are_the_newest_or_the_slowest) {
    const std::vector<FinishedRequest> rows = {request(7), request(9), request(8)};
    EXPECT_EQ(first_rows(rows, Order::newest, 2)[0]->id, "chatcmpl-8");
    EXPECT_EQ(first_rows(rows, Order::newest, 2).size(), 2U);
    EXPECT_EQ(first_rows(rows, Order::slowest, 9)[0]->id, "chatcmpl-9");
}

TEST(store, a_record_outlives_the_kill_of_its_process) {
    const Folder folder;
    int told[2];
    ASSERT_EQ(::pipe(told), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        auto store = Store::open(folder.file(), {}, kNow);
        for (int i = 0; store && i < 200; i++) (void)(*store)->add(request(i));
        (void)!::write(told[1], "x", 1);
        for (;;) ::pause();
    }
    char byte = 0;
    ASSERT_EQ(::read(told[0], &byte, 1), 1);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    auto store = open(folder.file());
    EXPECT_EQ(store->note(), "");
    EXPECT_EQ(store->rows({}, 1000)->size(), 200U);
    ::close(told[0]);
    ::close(told[1]);
}

TEST(store, a_damaged_file_is_set_aside_with_a_message) {
    const auto spoil = [](const std::string& path, size_t from, size_t bytes) {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(from));
        for (size_t i = 0; i < bytes; i++) file.put('#');
    };
    for (const size_t from : {size_t{0}, size_t{4096}}) {  // its head, then its first page of content
        const Folder folder;
        {
            auto store = open(folder.file());
            for (int i = 0; i < 500; i++) ASSERT_TRUE(store->add(request(i)));
        }
        spoil(folder.file(), from, 4096);
        auto store = open(folder.file());
        const std::string aside = folder.file() + ".damaged-" + std::to_string(kNow);
        EXPECT_NE(store->note().find(aside), std::string::npos) << store->note();
        EXPECT_TRUE(fs::exists(aside));
        EXPECT_TRUE(store->rows({}, 10)->empty());
        EXPECT_TRUE(store->add(request(1)));
    }
}

TEST(store, a_file_of_a_newer_version_is_left_as_it_is) {
    const Folder folder;
    open(folder.file());
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open(folder.file().c_str(), &raw), SQLITE_OK);
    sqlite3_exec(raw, "PRAGMA user_version = 99", nullptr, nullptr, nullptr);
    sqlite3_close(raw);
    const auto refused = Store::open(folder.file(), {}, kNow);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
}

TEST(store, what_cannot_be_opened_says_so) {
    const Folder folder;
    fs::create_directories(folder.file());  // a folder stands where the file should be
    const auto refused = Store::open(folder.file(), {}, kNow);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::io);
    EXPECT_NE(refused.error().message.find(folder.file()), std::string::npos);
}

TEST(store, the_oldest_records_go_first_when_there_are_too_many_bytes) {
    const Folder folder;
    const StoreLimits limits{.most_bytes = 512 << 10};
    auto store = open(folder.file(), limits);
    for (int i = 0; i < 1000; i++) {
        FinishedRequest r = request(i, kNow + i);
        r.record = std::string(2000, 'x');
        ASSERT_TRUE(store->add(r));
    }
    ASSERT_TRUE(store->prune(kNow));
    const auto rows = store->rows({}, 10'000);
    EXPECT_GT(rows->size(), 100U);
    EXPECT_LT(rows->size(), 300U);
    EXPECT_EQ(rows->back().id, "chatcmpl-999");
    EXPECT_LE(fs::file_size(folder.file()), limits.most_bytes);
}

TEST(store, records_over_the_age_limit_go) {
    const Folder folder;
    {
        auto store = open(folder.file());
        ASSERT_TRUE(store->add(request(1, kNow - 31 * kDayMs)));
        ASSERT_TRUE(store->add(request(2, kNow - 29 * kDayMs)));
    }
    auto store = open(folder.file());
    EXPECT_FALSE(store->find("chatcmpl-1"));
    EXPECT_TRUE(store->find("chatcmpl-2"));
}

TEST(summary, percentiles_are_by_nearest_rank) {
    std::vector<double> values;
    for (int i = 100; i >= 1; i--) values.push_back(i);
    const auto spread = spread_of(values);
    EXPECT_EQ(spread->p50, 50);
    EXPECT_EQ(spread->p90, 90);
    EXPECT_EQ(spread->p99, 99);
    EXPECT_EQ(spread->max, 100);
    EXPECT_EQ(spread_of(std::vector<double>{3})->p50, 3);
    EXPECT_FALSE(spread_of(std::vector<double>{}));
}

TEST(summary, cold_and_warm_are_never_mixed) {
    std::vector<FinishedRequest> rows = {request(1), request(2), request(3)};
    rows[1].cold = true;
    rows[1].ttft_ns = 9'000'000'000;
    rows[0].ttft_ns = 10;
    const ByStart both = figures_of(rows);
    EXPECT_EQ(both.warm.count, 2U);
    EXPECT_EQ(both.cold.count, 1U);
    EXPECT_EQ(both.warm.ttft_ns->max, 10);
    EXPECT_EQ(both.warm.ttft_ns->count, 1U);  // of the other nothing can be said
    EXPECT_EQ(both.cold.ttft_ns->p50, 9'000'000'000);
    EXPECT_FALSE(both.cold.gap_ns);
}

TEST(summary, buckets_cover_the_span_and_hold_each_row_once) {
    std::vector<FinishedRequest> rows;
    for (int i = 0; i < 1000; i++) rows.push_back(request(i, kNow + i * 7));
    for (const uint32_t count : {1U, 3U, 48U, 500U}) {
        const auto buckets = buckets_of(rows, kNow, kNow + 7000, count);
        ASSERT_EQ(buckets.size(), count);
        uint64_t held = 0;
        for (size_t i = 0; i < buckets.size(); i++) {
            held += buckets[i].count;
            EXPECT_EQ(buckets[i].outcomes[0], buckets[i].count);
            EXPECT_EQ(buckets[i].figures.warm.count, buckets[i].count);
            EXPECT_EQ(buckets[i].from_ms, i == 0 ? kNow : buckets[i - 1].to_ms);
        }
        EXPECT_EQ(held, rows.size());
        EXPECT_EQ(buckets.front().from_ms, kNow);
        EXPECT_EQ(buckets.back().to_ms, kNow + 7000);
    }
    EXPECT_EQ(buckets_of(rows, kNow + 7, kNow + 14, 4)[0].count, 1U);
}

TEST(summary, lengths_part_cold_warm_and_cached) {
    std::vector<FinishedRequest> rows = {request(1), request(2), request(3), request(4)};
    rows[0].prompt_tokens = 127;
    rows[1].prompt_tokens = 128;
    rows[2].prompt_tokens = 129;
    rows[2].cached_tokens = 65;
    rows[3].prompt_tokens = 255;
    rows[3].cold = true;
    const auto classes = lengths_of(rows);
    ASSERT_EQ(classes.size(), 2U);
    EXPECT_EQ(classes[0].from_tokens, 64U);
    EXPECT_EQ(classes[0].to_tokens, 127U);
    EXPECT_EQ(classes[1].warm.count, 1U);
    EXPECT_EQ(classes[1].cached.count, 1U);
    EXPECT_EQ(classes[1].cold.count, 1U);
}

TEST(summary, what_the_cache_saved_is_at_the_median_pace_of_reading) {
    std::vector<FinishedRequest> rows = {request(1), request(2), request(3)};
    rows[0].prompt_tokens_per_second = 1000;
    rows[1].cached_tokens = 5000;
    rows[1].computed_tokens = 1;
    rows[1].prompt_tokens_per_second = 3;  // of one step that read one token: not the pace of reading
    const Savings savings = savings_of(rows);
    EXPECT_EQ(savings.cached_tokens, 5000U);
    EXPECT_EQ(savings.computed_tokens, 201U);
    EXPECT_EQ(savings.saved_ns, 5'000'000'000);
    EXPECT_FALSE(savings_of(std::span(rows).subspan(1)).saved_ns);
}

}  // namespace
}  // namespace cadans::history
