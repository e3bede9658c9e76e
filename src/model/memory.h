// How much memory there is for this process, and how much a model will take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/kernel_table.h"
#include "model/gguf.h"
#include "model/spec.h"

namespace cadans::model {

/// Memory this process can still take, and what bounds it.
struct AvailableMemory {
    uint64_t bytes = 0;        ///< the smaller of host and control group
    uint64_t limit = 0;        ///< the bound itself: the host's memory or the group's limit
    bool from_cgroup = false;  ///< a control group (container) is the smaller one
};

/// The host's MemAvailable, or the control group's limit less what it cannot reclaim (v2 and v1, the
/// tightest ancestor counts), whichever is smaller.
///
/// `root` stands before /proc and /sys, for tests.
AvailableMemory available_memory(const std::string& root = "");

/// Keys and values of layers that need the same pages.
struct PageGroupEstimate {
    std::string name;  ///< "full attention" or "window of 512"
    uint32_t layers = 0;
    uint64_t bytes_per_token = 0;     ///< all its layers together, keys and values as f16
    uint64_t q8_bytes_per_token = 0;  ///< the same as q8, its scales among them
    uint32_t window = 0;              ///< tokens that are kept at most, 0: all
};

/// What a model takes once loaded, in bytes.
struct MemoryEstimate {
    uint64_t weight_bytes = 0;      ///< packed matrices, norms, biases: exact
    uint64_t layer_bytes = 0;       ///< of these: the matrices of all layers
    uint64_t head_bytes = 0;        ///< and the one that makes logits, which may be the embedding too
    uint64_t vocabulary_bytes = 0;  ///< token texts, scores, merges and their tables: about
    uint64_t scratch_bytes = 0;     ///< of the forward pass with the default step: about
    std::vector<PageGroupEstimate> groups;

    /// What loading needs, with no request served yet.
    uint64_t fixed_bytes() const noexcept { return weight_bytes + vocabulary_bytes + scratch_bytes; }
    /// What goes back when it is unloaded and its words are kept.
    uint64_t unloaded_bytes() const noexcept { return weight_bytes + scratch_bytes; }
    /// Keys and values of one sequence of that many tokens.
    uint64_t kv_bytes(uint64_t tokens, kernels::KvType kind = kernels::KvType::f16) const noexcept;
};

/// No tensor byte is read.
MemoryEstimate estimate_memory(const ModelSpec& spec, const GgufFile& file);

/// Refuses a model that would not fit, with both numbers, before any weight is read. Errors: no_memory.
Status check_fits(const MemoryEstimate& estimate, const AvailableMemory& available, const std::string& name);

}  // namespace cadans::model
