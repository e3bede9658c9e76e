#include "model/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>

#include "base/control_group.h"
#include "base/ids.h"
#include "base/units.h"
#include "kernels/packed.h"

namespace cadans::model {
namespace {

constexpr uint64_t kBytesPerKilobyte = 1024;
constexpr uint64_t kNoLimit = UINT64_MAX;

std::optional<std::string> slurp(const std::string& path) {
    std::ifstream in(path);
    if (!in) return std::nullopt;
    return std::string(std::istreambuf_iterator<char>(in), {});
}

std::optional<uint64_t> parse_number(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end == text.data()) return std::nullopt;
    return number;
}

/// A number from a file that holds nothing else ("max" and nonsense give nullopt).
std::optional<uint64_t> number_in_file(const std::string& path) {
    const auto text = slurp(path);
    return text ? parse_number(*text) : std::nullopt;
}

/// The number after `name` in a file of lines "name number".
std::optional<uint64_t> number_after(const std::string& text, std::string_view name) {
    size_t at = 0;
    while (at < text.size()) {
        const size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line = std::string_view(text).substr(at, end - at);
        if (line.starts_with(name)) return parse_number(line.substr(name.size()));
        at = end + 1;
    }
    return std::nullopt;
}

/// What the numbers of one hierarchy are called.
struct Hierarchy {
    GroupVersion version;
    std::string_view limit, usage, reclaimable;
};
constexpr Hierarchy kHierarchies[] = {
    {GroupVersion::two, "memory.max", "memory.current", "inactive_file "},
    {GroupVersion::one, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
};

/// The tightest of a group and its ancestors.
void apply_group(const std::string& root, const Hierarchy& names, AvailableMemory& memory) {
    for (const std::string& folder : control_group_folders(names.version, "memory", root)) {
        const auto limit = number_in_file(folder + std::string(names.limit));
        const auto used = number_in_file(folder + std::string(names.usage));
        // Version 1 writes "no limit" as a number near 2^63.
        if (!limit || !used || *limit >= (uint64_t{1} << 60)) continue;
        const auto statistics = slurp(folder + "memory.stat");
        const uint64_t reclaimable = statistics ? number_after(*statistics, names.reclaimable).value_or(0) : 0;
        const uint64_t held = *used - std::min(*used, reclaimable);
        const uint64_t free = *limit - std::min(*limit, held);
        if (free < memory.bytes) memory = {free, *limit, true};
    }
}

uint64_t align64(uint64_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

/// Packed size of a tensor, without packing it.
uint64_t held_bytes(const ExpectedTensor& expected, const GgufTensor& found) {
    if (expected.outputs == 0) return align64(expected.inputs * sizeof(float));
    const auto type = kernels::type_from_gguf(static_cast<uint32_t>(found.type));
    return type ? kernels::packed_bytes(*type, expected.outputs, expected.inputs) : found.payload.size();
}

}  // namespace

AvailableMemory available_memory(const std::string& root) {
    AvailableMemory memory{kNoLimit, kNoLimit, false};
    if (const auto host = slurp(root + "/proc/meminfo")) {
        if (const auto total = number_after(*host, "MemTotal:")) memory.limit = *total * kBytesPerKilobyte;
        if (const auto free = number_after(*host, "MemAvailable:")) memory.bytes = *free * kBytesPerKilobyte;
    }
    for (const Hierarchy& hierarchy : kHierarchies) apply_group(root, hierarchy, memory);
    return memory;
}

uint64_t MemoryEstimate::kv_bytes(uint64_t tokens, kernels::KvType kind) const noexcept {
    uint64_t bytes = 0;
    for (const PageGroupEstimate& group : groups)
        bytes += (kind == kernels::KvType::q8 ? group.q8_bytes_per_token : group.bytes_per_token) *
                 (group.window == 0 ? tokens : std::min<uint64_t>(tokens, group.window));
    return bytes;
}

MemoryEstimate estimate_memory(const ModelSpec& spec, const GgufFile& file) {
    MemoryEstimate estimate;
    const std::string head = spec.tied_head ? "token_embd.weight" : "output.weight";
    for (const ExpectedTensor& expected : expected_tensors(spec)) {
        const GgufTensor* const found = file.tensor(expected.name);
        if (found == nullptr) continue;
        const uint64_t bytes = held_bytes(expected, *found);
        estimate.weight_bytes += bytes;
        if (expected.outputs > 0 && expected.name.starts_with("blk.")) estimate.layer_bytes += bytes;
        if (expected.name == head) estimate.head_bytes = bytes;
    }
    // Texts twice (as spelt, as bytes) and a hash entry of about 100 bytes a token, 24 a merge.
    for (const GgufEntry& entry : file.metadata())
        if (entry.type == GgufType::array && entry.key.starts_with("tokenizer.ggml."))
            estimate.vocabulary_bytes +=
                entry.element == GgufType::string ? 2 * entry.payload.size() + 100 * entry.count : entry.payload.size();
    // One step of 512 rows: residual, normalised and quantised rows, q, k, v, gate, up; logits of 64 rows.
    constexpr uint64_t kStepRows = 512;
    constexpr uint64_t kLogitRows = 64;
    const uint64_t per_row = 4 * spec.width + 2 * (spec.q_width() + 2 * spec.kv_width()) + 3 * spec.ffn_width;
    estimate.scratch_bytes = sizeof(float) * (kStepRows * per_row + kLogitRows * uint64_t{spec.vocab});

    const auto windowed = static_cast<uint32_t>(std::ranges::count(spec.windowed, 1));
    const auto per_layer = [&](kernels::KvType kind) {
        return spec.kv_heads * kernels::kv_page_bytes(spec.head_dim, kind) / kPageTokens;
    };
    const uint64_t f16 = per_layer(kernels::KvType::f16), q8 = per_layer(kernels::KvType::q8);
    const uint32_t full = spec.n_layers - windowed;
    if (full > 0) estimate.groups.push_back({"full attention", full, full * f16, full * q8, 0});
    if (windowed > 0)
        estimate.groups.push_back(
            {fmt::format("window of {}", spec.window), windowed, windowed * f16, windowed * q8, spec.window});
    return estimate;
}

Status check_fits(const MemoryEstimate& estimate, const AvailableMemory& available, const std::string& name) {
    const uint64_t needed = estimate.fixed_bytes();
    if (needed <= available.bytes) return Ok{};
    return Error{ErrorCode::no_memory,
                 fmt::format("{} needs {} of memory, but only {} of {} are free{}", name, format_size(needed),
                             format_size(available.bytes), format_size(available.limit),
                             available.from_cgroup ? " (limit of the container or control group)" : ""),
                 "memory"};
}

}  // namespace cadans::model
