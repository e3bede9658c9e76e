// A loaded model: its spec, its words and its weights, packed for the kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "kernels/packed.h"
#include "model/gguf.h"
#include "model/spec.h"

namespace cadans::model {

using kernels::PackedMatrix;

/// A matrix whose outputs are rows [first_row, first_row + matrix.rows) of a larger output.
struct Part {
    PackedMatrix matrix;
    uint32_t first_row = 0;
};

/// What one layer computes with. Spans are empty where the spec says there is none.
struct LayerWeights {
    std::span<const float> attn_norm;       ///< [width]
    std::vector<Part> qkv;                  ///< outputs q, then k, then v; neighbours of equal type are one part
    std::span<const float> qkv_bias;        ///< [q_width + 2 * kv_width], in the order of qkv
    std::span<const float> q_norm;          ///< [head_dim]
    std::span<const float> k_norm;          ///< [head_dim]
    PackedMatrix attn_output;               ///< q_width → width
    std::span<const float> post_attn_norm;  ///< [width]
    std::span<const float> ffn_norm;        ///< [width]
    PackedMatrix ffn_gate;                  ///< width → ffn_width
    PackedMatrix ffn_up;                    ///< width → ffn_width
    PackedMatrix ffn_down;                  ///< ffn_width → width
    std::span<const float> post_ffn_norm;   ///< [width]
};

/// How far a load is.
struct LoadProgress {
    uint64_t done_bytes = 0;  ///< of the file's tensors
    uint64_t total_bytes = 0;
};

/// Called on the loading thread, often; returning false stops the load with `cancelled`.
using OnLoadProgress = std::function<bool(LoadProgress)>;

/// The weights and the numbers of one model; the file is not needed any more once it is loaded.
///
/// Thread  immutable
class Model {
  public:
    /// Packs every matrix into one page-aligned arena, on all threads of the pool; the bytes do not
    /// depend on their number. Pages of the file are given back as they are packed.
    ///
    /// Errors  no_memory with both numbers before a weight is read, bad_input for weights that are not
    ///         finite (tensor and count), cancelled; what read_spec checks is taken as checked
    /// Cost    reads the file's tensors once
    static Result<std::unique_ptr<Model>> load(const GgufFile& file, ModelSpec spec, ThreadPool& pool,
                                               const OnLoadProgress& progress = {});
    ~Model();
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;

    const ModelSpec& spec() const noexcept { return spec_; }
    const LayerWeights& layer(uint32_t i) const { return layers_[i]; }
    std::span<const float> output_norm() const noexcept { return output_norm_; }    ///< [width]
    std::span<const float> rope_factors() const noexcept { return rope_factors_; }  ///< [rope_dims / 2] or empty
    const PackedMatrix& head() const noexcept { return head_; }                     ///< width → vocab

    /// The embedding of a token, not yet scaled. `out` has width floats. Cost: one row.
    void embedding_row(uint32_t token, std::span<float> out) const;

    uint64_t weight_bytes() const noexcept { return arena_bytes_; }  ///< memory held

  private:
    Model() = default;
    friend class ModelLoader;

    ModelSpec spec_;
    std::byte* arena_ = nullptr;
    uint64_t arena_bytes_ = 0;
    std::vector<LayerWeights> layers_;
    std::span<const float> output_norm_;
    std::span<const float> rope_factors_;
    PackedMatrix head_;
    PackedMatrix embedding_;  ///< the head itself where they are tied
};

}  // namespace cadans::model
