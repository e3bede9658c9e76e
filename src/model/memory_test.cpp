#include "model/memory.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/ids.h"
#include "base/testing/fake_system.h"
#include "model/testing/tiny_model.h"

namespace cadans::model {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

/// A system with so much memory, all of it in kilobytes.
struct FakeSystem : cadans::testing::FakeSystem {
    FakeSystem& write(const std::string& path, const std::string& text) {
        cadans::testing::FakeSystem::write(path, text);
        return *this;
    }
    FakeSystem& host(uint64_t total_kb, uint64_t available_kb) {
        return write("/proc/meminfo", "MemTotal:       " + std::to_string(total_kb) +
                                          " kB\nMemFree: 1 kB\nMemAvailable:   " + std::to_string(available_kb) +
                                          " kB\n");
    }
    AvailableMemory read() const { return available_memory(root()); }
};

TEST(memory, without_a_group_the_host_counts) {
    FakeSystem system;
    const AvailableMemory memory = system.host(16 << 20, 10 << 20).read();
    EXPECT_EQ(memory.bytes, 10 * kGiB);
    EXPECT_EQ(memory.limit, 16 * kGiB);
    EXPECT_FALSE(memory.from_cgroup);
}

TEST(memory, a_group_limit_counts_less_what_cannot_be_reclaimed) {
    FakeSystem system;
    system.host(16 << 20, 10 << 20).write("/proc/self/cgroup", "0::/a/b\n");
    system.write("/sys/fs/cgroup/a/b/memory.max", "4294967296\n");
    system.write("/sys/fs/cgroup/a/b/memory.current", "3221225472\n");
    system.write("/sys/fs/cgroup/a/b/memory.stat", "anon 5\ninactive_file 1073741824\n");
    const AvailableMemory memory = system.read();
    EXPECT_EQ(memory.bytes, 2 * kGiB);
    EXPECT_EQ(memory.limit, 4 * kGiB);
    EXPECT_TRUE(memory.from_cgroup);
}

TEST(memory, the_tightest_ancestor_counts_and_max_is_no_limit) {
    FakeSystem system;
    system.host(16 << 20, 10 << 20).write("/proc/self/cgroup", "0::/a/b\n");
    system.write("/sys/fs/cgroup/a/b/memory.max", "max\n").write("/sys/fs/cgroup/a/b/memory.current", "1\n");
    system.write("/sys/fs/cgroup/a/memory.max", "1073741824\n").write("/sys/fs/cgroup/a/memory.current", "0\n");
    EXPECT_EQ(system.read().bytes, kGiB);
}

TEST(memory, inside_a_container_the_mount_itself_is_the_group) {
    FakeSystem system;
    system.host(16 << 20, 10 << 20).write("/proc/self/cgroup", "0::/\n");
    system.write("/sys/fs/cgroup/memory.max", "1073741824\n").write("/sys/fs/cgroup/memory.current", "536870912\n");
    EXPECT_EQ(system.read().bytes, kGiB / 2);
}

TEST(memory, reads_version_1_groups) {
    FakeSystem system;
    system.host(16 << 20, 10 << 20).write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/1\n");
    system.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
    system.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1073741824\n");
    system.write("/sys/fs/cgroup/memory/memory.stat", "cache 7\ntotal_inactive_file 536870912\n");
    EXPECT_EQ(system.read().bytes, kGiB + kGiB / 2);
    system.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    EXPECT_EQ(system.read().bytes, 10 * kGiB);
}

TEST(memory, strange_files_mean_no_limit) {
    FakeSystem system;
    system.host(16 << 20, 10 << 20).write("/proc/self/cgroup", "nonsense\n0::\n::::\n0::/../../x");
    system.write("/sys/fs/cgroup/memory.max", "soon").write("/sys/fs/cgroup/memory.current", "");
    EXPECT_EQ(system.read().bytes, 10 * kGiB);
    EXPECT_EQ(available_memory("/nowhere").bytes, UINT64_MAX);
}

TEST(memory, says_both_numbers_when_a_model_does_not_fit) {
    MemoryEstimate estimate;
    estimate.weight_bytes = 8 * kGiB;
    Status fits = check_fits(estimate, {4 * kGiB, 6 * kGiB, true}, "big.gguf");
    ASSERT_FALSE(fits.has_value());
    EXPECT_EQ(fits.error().code, ErrorCode::no_memory);
    EXPECT_NE(fits.error().message.find("8.00 GiB"), std::string::npos) << fits.error().message;
    EXPECT_NE(fits.error().message.find("4.00 GiB"), std::string::npos) << fits.error().message;
    EXPECT_TRUE(check_fits(estimate, {8 * kGiB, 8 * kGiB, false}, "big.gguf").has_value());
}

/// A tiny model of which five layers in six have a window.
std::pair<ModelSpec, MemoryEstimate> with_a_window() {
    const testing::Bytes bytes = testing::tiny_model({.family = "gemma3", .layers = 6}).bytes();
    const auto file = GgufFile::parse(bytes, "t.gguf");
    const auto spec = read_spec(*file);
    EXPECT_TRUE(spec.has_value()) << spec.error().message;
    return {*spec, estimate_memory(*spec, *file)};
}

TEST(memory, a_window_bounds_the_keys_that_are_kept) {
    const auto [spec, estimate] = with_a_window();
    ASSERT_EQ(estimate.groups.size(), 2U);
    const uint64_t layer = 2 * 2 * 64;  // keys and values, two bytes each, kv width 64
    EXPECT_EQ(estimate.kv_bytes(100), layer * (1 * 100 + 5 * 32));
    EXPECT_GT(estimate.weight_bytes, 0U);
}

TEST(memory, keys_and_values_of_each_kind_take_what_a_page_of_that_kind_takes) {
    const auto [spec, estimate] = with_a_window();
    for (const kernels::KvType kind : {kernels::KvType::f16, kernels::KvType::q8})  // one page: inside the window too
        EXPECT_EQ(estimate.kv_bytes(kPageTokens, kind),
                  6 * spec.kv_heads * kernels::kv_page_bytes(spec.head_dim, kind));
    EXPECT_LT(estimate.kv_bytes(1000, kernels::KvType::q8), estimate.kv_bytes(1000));
}

}  // namespace
}  // namespace cadans::model
