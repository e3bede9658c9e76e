// The forward pass: from tokens to the residual stream, and from chosen rows of that to logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "engine/attention_work.h"
#include "engine/batch.h"
#include "engine/kv_arena.h"
#include "engine/limits.h"
#include "engine/operand.h"
#include "engine/work_share.h"
#include "kernels/table.h"
#include "model/weights.h"

namespace cadans::engine {

/// Runs a batch of rows through one model. The families (llama, qwen2, qwen3, gemma3) are one sequence of
/// phases; what differs is data in ModelSpec: biases, norms of heads, norms after a block, windows.
///
/// The bits of a row depend on its sequence's own tokens alone, not on the other rows or the threads.
/// Thread rule: one thread calls; the pool's threads work inside. No allocation after construction.
/// Source: Vaswani et al. 2017; RoPE, Su et al. 2021; RMSNorm, Zhang & Sennrich 2019; GLU, Shazeer 2020.
class Forward {
  public:
    /// All references outlive this object.
    Forward(const model::Model& model, const KvArena& arena, const kernels::KernelTable& table, ThreadPool& pool,
            const EngineLimits& limits);

    /// Computes all layers for all rows; writes their keys and values into the pages.
    void run(const Batch& batch);

    /// The logits of some rows of the last batch, at most kLogitRows.
    /// out [rows.size()][vocab] f32
    void logits(std::span<const uint32_t> rows, float* out);

    /// A row of the last batch behind the last norm: what the head is multiplied with.
    /// out [width] f32. Thread rule: between two runs, any
    void last_layer(uint32_t row, float* out) const;

  private:
    void embed(uint32_t thread, const Batch& batch);
    void attention_block(uint32_t thread, const Batch& batch, uint32_t layer);
    void ffn_block(uint32_t thread, const Batch& batch, uint32_t layer);
    void place_heads(uint32_t thread, const Batch& batch, uint32_t layer);
    void add_to_stream(uint32_t thread, uint32_t rows, std::span<const float> post_norm);
    /// y = W x for all rows; then done(first output, last output) on the thread that has them.
    template <class Done>
    void product(uint32_t thread, uint32_t phase, const kernels::PackedMatrix& w, const Operand& x, uint32_t rows,
                 float* y, uint32_t stride, Done&& done);
    template <class F>
    void each_row(uint32_t thread, uint32_t rows, F&& f);

    const model::Model& model_;
    const model::ModelSpec& spec_;
    const KvArena& arena_;
    const kernels::KernelTable& k_;
    ThreadPool& pool_;
    uint32_t threads_;

    WorkShare share_;
    std::vector<AttentionWork> attention_;  ///< per page group
    std::vector<double> frequencies_[2];    ///< of the full and the windowed rope
    Aligned<float> cos_[2], sin_[2];        ///< [rows][rope_dims / 2]
    Aligned<float> stream_;                 ///< [rows][width]: the residual stream
    Aligned<float> qkv_;                    ///< [rows][q_width + 2 * kv_width]
    Aligned<float> projected_;              ///< [rows][width]: what a block adds to the stream
    Aligned<float> up_;                     ///< [rows][ffn_width]
    Operand block_in_, attended_, gated_, head_in_;
};

}  // namespace cadans::engine
