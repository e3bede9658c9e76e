// Goal: keep_alive is read as Ollama's clients write it. Method: what Go's time.ParseDuration says of the same texts.
#include "serve/dialects/keep_alive.h"

#include <gtest/gtest.h>

namespace cadans::serve {
namespace {

Nanos read(std::string_view text) {
    const Result<Nanos> got = parse_keep_alive(text);
    EXPECT_TRUE(got.has_value()) << text;
    return got ? *got : -1;
}

TEST(keep_alive, durations_and_seconds) {
    EXPECT_EQ(read("5m"), 300 * kNanosPerSecond);
    EXPECT_EQ(read("1h30m"), 5400 * kNanosPerSecond);
    EXPECT_EQ(read("1.5h"), 5400 * kNanosPerSecond);
    EXPECT_EQ(read("300ms"), 300 * kNanosPerMilli);
    EXPECT_EQ(read("250us"), 250 * kNanosPerMicro);
    EXPECT_EQ(read("0"), 0);
    EXPECT_EQ(read("0s"), 0);
    EXPECT_EQ(read("90"), 90 * kNanosPerSecond);
    EXPECT_EQ(keep_alive_of(3600), 3600 * kNanosPerSecond);
    EXPECT_EQ(keep_alive_of(0.5), 500 * kNanosPerMilli);
}

TEST(keep_alive, negative_is_for_ever_and_so_is_longer_than_anybody_lives) {
    for (const char* text : {"-1", "-1m", "-1h30m", "1000000h"}) EXPECT_EQ(read(text), kForEver) << text;
    EXPECT_EQ(keep_alive_of(-1), kForEver);
    EXPECT_EQ(keep_alive_of(1e300), kForEver);
}

TEST(keep_alive, anything_else_is_refused) {
    for (const char* text : {"", "-", "m", "5x", "5 m", "1h30", "five", "5m-3s", "1e3", "nan", "inf"})
        EXPECT_FALSE(parse_keep_alive(text).has_value()) << text;
}

}  // namespace
}  // namespace cadans::serve
