// What a model is, in numbers: everything the forward pass needs to know besides the weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/table.h"
#include "model/gguf.h"

namespace cadans::model {

enum class Family : uint8_t { llama, qwen2, qwen3, gemma3 };

using kernels::RopeStyle;

enum class Activation : uint8_t { silu, gelu_tanh };

/// Rotation angle of pair i at a position: position * scale * base^(-2i/rope_dims) / factor_i, where
/// factor_i comes from Model::rope_factors() and is 1 without them.
struct Rope {
    double base = 10000.0;
    double scale = 1.0;  ///< 1 / the file's linear factor
};

/// A dense transformer of one of the known families. All values are inside their stated ranges.
struct ModelSpec {
    Family family = Family::llama;
    std::string architecture;  ///< as the file says it
    std::string name;          ///< general.name, else empty

    uint32_t n_layers = 0;        ///< 1 .. 1,024
    uint32_t width = 0;           ///< of the residual stream, 1 .. 65,536
    uint32_t heads = 0;           ///< 1 .. 1,024
    uint32_t kv_heads = 0;        ///< divides heads
    uint32_t head_dim = 0;        ///< a multiple of 16, 16 .. 512; of q, k and v alike
    uint32_t ffn_width = 0;       ///< 1 .. 1,048,576
    uint32_t vocab = 0;           ///< tokens; rows of the head and of the embedding that are used
    uint32_t context_length = 0;  ///< tokens, as trained

    float rms_eps = 1e-5F;
    RopeStyle rope_style = RopeStyle::norm;
    uint32_t rope_dims = 0;  ///< even, at most head_dim; the rest of a head does not turn
    Rope rope;               ///< of layers that see everything
    Rope rope_windowed;      ///< of layers with a window; the same unless the family says otherwise
    bool rope_factors = false;

    uint32_t window = 0;            ///< a windowed layer's token at p sees q iff p - q < window; 0: no such layer
    std::vector<uint8_t> windowed;  ///< per layer, 1 where the window applies

    bool qkv_bias = false;    ///< a bias is added to q, k and v
    bool qk_norm = false;     ///< each head of q and k is normalised before it turns
    bool post_norms = false;  ///< attention and ffn outputs are normalised before they are added
    bool tied_head = false;   ///< the head is the embedding
    Activation activation = Activation::silu;
    float embedding_scale = 1.0F;  ///< times the embedding row
    float attention_scale = 0.0F;  ///< times q·k
    float logit_softcap = 0.0F;    ///< c * tanh(x / c) on the logits; 0: none

    uint32_t q_width() const noexcept { return heads * head_dim; }
    uint32_t kv_width() const noexcept { return kv_heads * head_dim; }
    const Rope& rope_of(uint32_t layer) const { return windowed[layer] != 0 ? rope_windowed : rope; }
};

/// Reads and checks the model that a file describes: known family, values in range, every tensor that
/// the forward pass needs present with its shape and a type that can be computed with, and none that
/// would be ignored though it changes the answer.
///
/// Errors  unsupported for a family, type or feature that is not there (the message says which are),
///         bad_input otherwise; `where` names key or tensor
/// Cost    no tensor byte is read
Result<ModelSpec> read_spec(const GgufFile& file);

/// "llama, qwen2, qwen3, gemma3", for error messages.
std::string_view supported_families() noexcept;

/// A tensor of a model and the place it fills.
struct ExpectedTensor {
    std::string name;
    uint64_t inputs = 0;           ///< dims[0]
    uint64_t outputs = 0;          ///< dims[1] of a matrix; 0 for a vector (norm, bias, factors)
    bool rows_may_exceed = false;  ///< padding rows beyond `outputs` are allowed and not used
};

/// Every tensor that a model with this spec has, in the order in which the forward pass reads them.
std::vector<ExpectedTensor> expected_tensors(const ModelSpec& spec);

}  // namespace cadans::model
