#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "base/units.h"

namespace cadans {
namespace {

TEST(units, reads_sizes_as_people_write_them) {
    EXPECT_EQ(*parse_size("512"), 512u);
    EXPECT_EQ(*parse_size("64K"), 65536u);
    EXPECT_EQ(*parse_size("1.5G"), 1610612736u);
    EXPECT_EQ(*parse_size("2GiB"), 2147483648u);
    for (const char* bad : {"", "G", "-1", "1X", "nan", "1e300", "12 M"}) EXPECT_FALSE(parse_size(bad)) << bad;
}

TEST(units, prints_sizes_and_spans_for_people) {
    EXPECT_EQ(format_size(98362432), "93.8 MiB");
    EXPECT_EQ(format_duration(6'900'000'000), "6.9 s");
    EXPECT_EQ(format_duration(12'000'000), "12 ms");
    EXPECT_EQ(format_duration(125 * kNanosPerSecond), "2 min 5 s");
    EXPECT_EQ(format_duration(119'600 * kNanosPerMilli), "2 min 0 s");
    EXPECT_EQ(format_duration(59'960 * kNanosPerMilli), "1 min 0 s");
    EXPECT_EQ(format_duration(999'600 * kNanosPerMicro), "1.0 s");
}

TEST(random, noise_differs_in_every_part_of_its_key) {
    const uint64_t here = noise_key(1, 2, 3);
    EXPECT_EQ(here, noise_key(1, 2, 3));
    EXPECT_NE(here, noise_key(2, 2, 3));
    EXPECT_NE(here, noise_key(1, 3, 3));
    EXPECT_NE(here, noise_key(1, 2, 4));
}

TEST(file, says_what_is_wrong_with_a_path) {
    EXPECT_EQ(MappedFile::open("/nonexistent/x").error().code, ErrorCode::not_found);
    EXPECT_EQ(MappedFile::open("/").error().code, ErrorCode::bad_input);
    EXPECT_EQ(MappedFile::open("/dev/zero").error().code, ErrorCode::bad_input);
}

TEST(file, what_was_written_whole_reads_back) {
    const auto path =
        (std::filesystem::temp_directory_path() / ("cadans_file_test_" + std::to_string(::getpid()))).string();
    ASSERT_TRUE(write_whole(path, "hello"));
    EXPECT_EQ(*read_text(path, 100), "hello");
    EXPECT_EQ(read_text(path, 4).error().code, ErrorCode::too_large);
    std::filesystem::remove(path);
}

TEST(thread_pool, every_thread_runs_once_and_barriers_order_phases) {
    for (uint32_t threads : {1u, 2u, 3u, 5u}) {
        ThreadPool pool(threads);
        std::vector<int> first(threads), second(threads);
        for (int round = 1; round <= 200; round++) {
            pool.run([&](uint32_t t, uint32_t n) {
                first[t]++;
                pool.barrier();
                for (uint32_t i = 0; i < n; i++) second[t] += first[i] == round;
            });
        }
        for (uint32_t t = 0; t < threads; t++) EXPECT_EQ(second[t], static_cast<int>(200 * threads));
    }
}

TEST(check, ends_the_process_with_its_sentence) {
    EXPECT_EXIT(check(false, "pigs fly"), testing::ExitedWithCode(70), "pigs fly");
}

}  // namespace
}  // namespace cadans
