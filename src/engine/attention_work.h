// Attention cut into units that threads take one by one: tiles of prompt rows, and spans of long single rows.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/aligned.h"
#include "engine/batch.h"
#include "engine/kv_arena.h"
#include "engine/limits.h"
#include "kernels/table.h"
#include "model/spec.h"

namespace cadans::engine {

/// The units of one page group for one step; the same for all its layers.
///
/// A row's result does not depend on how it was cut: spans are folded at fixed places either way.
class AttentionWork {
  public:
    AttentionWork(const model::ModelSpec& spec, uint32_t window, uint32_t group, const EngineLimits& limits,
                  uint32_t threads);

    /// Cuts the step's items into units, in plan order (decode first).
    void plan(const Batch& batch);
    uint32_t units() const noexcept { return static_cast<uint32_t>(units_.size()); }

    /// Where the rows of a layer are, and where they go.
    struct Layer {
        const KvArena& arena;
        uint32_t layer;
        const float* q;     ///< first row's first query head
        uint32_t q_stride;  ///< floats from row to row
        float* out;         ///< [rows][q_width]
    };

    /// Carries out one unit on this thread.
    void run(uint32_t unit, const Batch& batch, const Layer& layer, const kernels::KernelTable& k, uint32_t thread);
    /// Joins the spans of row r, if it was split. After all units are done.
    void merge(uint32_t row, const Batch& batch, const Layer& layer, const kernels::KernelTable& k) const;

  private:
    static constexpr uint32_t kTileRows = 32;
    static constexpr uint32_t kWhole = UINT32_MAX;

    struct Unit {
        uint32_t item, kv_head, row, rows, span;  ///< span kWhole: all keys
    };
    struct Split {
        uint32_t first_span = 0, spans = 0;  ///< 0 spans: not split
        size_t partials = 0;                 ///< offset of [kv_head][span][q_head] partial results
    };
    kernels::AttentionHead head_;
    uint32_t kv_heads_, group_, q_width_;
    uint32_t max_split_items_;
    std::vector<Unit> units_;
    std::vector<Split> splits_;  ///< per item
    Aligned<float> partials_;
    std::vector<Aligned<const std::byte*>> pages_;  ///< per thread, by absolute page
    std::vector<Aligned<std::byte>> scratch_;       ///< per thread
};

}  // namespace cadans::engine
