#include "model/child.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

namespace cadans::model {
namespace {

TEST(child, gives_back_what_the_job_returned) {
    EXPECT_TRUE(run_in_child([] { return Status(Ok{}); }, "the job").has_value());
    Status status = run_in_child([] { return Status(bad_input("wrong", "there at byte 7")); }, "the job");
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::bad_input);
    EXPECT_EQ(status.error().message, "wrong");
    EXPECT_EQ(status.error().where, "there at byte 7");
    status = run_in_child([] { return Status(unsupported("", "")); }, "the job");
    EXPECT_EQ(status.error().code, ErrorCode::unsupported);
}

TEST(child, that_dies_becomes_an_error_that_names_the_signal) {
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGKILL}) {
        Status status = run_in_child(
            [signal] {
                ::raise(signal);
                return Status(Ok{});
            },
            "the reader of x.gguf");
        ASSERT_FALSE(status.has_value());
        EXPECT_EQ(status.error().code, ErrorCode::internal);
        EXPECT_EQ(status.error().message,
                  "the reader of x.gguf died (signal " + std::to_string(signal) + "); the file is refused");
    }
}

TEST(child, that_exits_without_a_word_is_an_error) {
    Status status = run_in_child([]() -> Status { ::_exit(0); }, "the job");
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().message, "the job died (exit 0); the file is refused");
}

TEST(child, that_never_ends_is_stopped) {
    const ChildLimits limits{.wall = std::chrono::milliseconds(200)};
    Status status = run_in_child(
        []() -> Status {
            while (true) ::pause();
        },
        "the job", limits);
    ASSERT_FALSE(status.has_value());
    EXPECT_NE(status.error().message.find("took more than"), std::string::npos);
}

TEST(child, cannot_use_more_memory_than_allowed) {
    // Under a sanitizer the allocator hangs rather than fails, and the wall clock ends the child.
    const ChildLimits limits{.memory_bytes = uint64_t{64} << 20, .wall = std::chrono::seconds(2)};
    Status status = run_in_child(
        [] {
            std::vector<std::vector<char>> hoard;
            for (int i = 0; i < 1024; ++i) hoard.emplace_back(size_t{1} << 20, 'x');
            return Status(hoard.size() == 1024 ? bad_input("got a GiB") : bad_input("odd"));
        },
        "the job", limits);
    ASSERT_FALSE(status.has_value());
    EXPECT_NE(status.error().message, "got a GiB");
}

TEST(child, has_no_network_and_no_programs) {
    Status status = run_in_child(
        [] {
            const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
            const bool sock = fd >= 0;
            char name[] = "/bin/true";
            char* const arguments[] = {name, nullptr};
            ::execv(name, arguments);  // returns only when refused
            return Status(bad_input(sock ? "socket" : "neither"));
        },
        "the job");
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().message, "neither");
}

TEST(child, has_none_of_our_descriptors) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    Status status = run_in_child(
        [&] { return ::write(ends[1], "x", 1) == 1 ? Status(bad_input("still open")) : Status(Ok{}); }, "the job");
    EXPECT_TRUE(status.has_value());
    ::close(ends[0]);
    ::close(ends[1]);
}

}  // namespace
}  // namespace cadans::model
