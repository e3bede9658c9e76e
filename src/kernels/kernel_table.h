// The kernels of one instruction set, as a table of functions: every table gives the same bits for the same input.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "kernels/packed.h"

namespace cadans::kernels {

enum class Isa : uint8_t { scalar, avx2, avx512 };  ///< avx512 means F, BW, DQ, VL and VNNI

inline constexpr size_t kGroup = 32;      ///< elements of an activation that share a scale
inline constexpr size_t kSpanKeys = 512;  ///< keys whose softmax is folded before it is merged; anchored at position 0

/// 32 elements of an activation row, quantised: x[i] is about scale * codes[i], codes in [-127, 127].
struct ActivationGroup {
    int8_t codes[kGroup];
    float scale;              ///< largest magnitude / 127; 0 for a group of zeros
    float scaled_sum;         ///< scale * float(sum of codes)
    int16_t neg_pairs[2];     ///< -(sum of codes[i] with i % 4 below 2), then with i % 4 from 2 on
    int16_t neg_pairs_hi[2];  ///< the same of codes[16..31]
};
static_assert(sizeof(ActivationGroup) == 48);

/// Bytes of one quantised activation row.
constexpr size_t activation_bytes(size_t cols) noexcept { return cols / kGroup * sizeof(ActivationGroup); }

/// Rows of input of a product: ActivationGroup[cols / 32] for quantised weights, float[cols] for the others.
struct InputRows {
    const std::byte* data = nullptr;  ///< 4-byte aligned
    size_t stride_bytes = 0;          ///< from row to row
    size_t n = 0;                     ///< number of rows
};

/// Which elements of a head turn together: (2i, 2i+1) or (i, i + n_rot/2).
enum class RopeStyle : uint8_t { norm, neox };

/// What keys and values are kept as: f16, or s8 with an f32 scale for each 32 elements of a token's head.
enum class KvType : uint8_t { f16, q8 };

/// Attention of one kv head: what does not change from row to row.
struct AttentionHead {
    size_t head_dim = 0;   ///< a multiple of 16, at most 512
    size_t q_heads = 1;    ///< query heads that share this kv head
    size_t window = 0;     ///< 0: full; else a row at p1 sees p0 iff p1 - p0 < window
    float scale = 1.0f;    ///< multiplies the score
    float softcap = 0.0f;  ///< 0: none; else score becomes softcap * tanh(score / softcap)
    KvType kv = KvType::f16;
};

/// Query rows: row r, head h starts at q + r * row_stride + h * head_stride and sits at position first_position + r.
struct QueryRows {
    const float* q = nullptr;
    size_t row_stride = 0;   ///< in floats
    size_t head_stride = 0;  ///< in floats
    size_t n = 0;
    size_t first_position = 0;
};

/// Where attention writes: row r, head h at data + r * row_stride + h * head_stride; must not overlap q.
struct AttentionOut {
    float* data = nullptr;
    size_t row_stride = 0;
    size_t head_stride = 0;
};

inline constexpr size_t kMaxHeadDim = 512;
inline constexpr size_t kAttentionTile = 24;  ///< query rows (times heads) that share a converted page

/// Bytes of one page for one layer and one kv head: K as [head_dim][32 tokens], then V as [32 tokens][head_dim], then,
/// for q8, the scales of K as [groups of 32 elements][32 tokens] and those of V as [32 tokens][groups].
[[gnu::always_inline]] constexpr size_t kv_page_bytes(size_t head_dim, KvType type = KvType::f16) noexcept {
    const size_t elements = 2 * head_dim * kPageTokens;
    return type == KvType::f16 ? 2 * elements
                               : elements + 2 * ((head_dim + kGroup - 1) / kGroup) * kPageTokens * sizeof(float);
}

/// Bytes of scratch for `attention` and `attention_span`, 64-byte aligned, one per thread.
constexpr size_t attention_scratch_bytes(size_t head_dim) noexcept {
    return sizeof(float) * (2 * head_dim * kPageTokens + kAttentionTile * (2 * head_dim + 64));
}

/// Floats of one partial result (accumulator, then maximum, sum, padding) of attention_span.
constexpr size_t attention_partial_floats(size_t head_dim) noexcept { return head_dim + 16; }

/// All functions: thread-safe, no allocation, need set_float_mode() on their thread. Pointers to f32 need only
/// 4-byte alignment; `n` may be any number unless said otherwise; in-place use (out == x) is fine for the
/// element-wise ones. The results have the same bits in every table.
struct KernelTable {
    Isa isa;
    const char* name;  ///< "scalar", "avx2", "avx512"

    /// out[row of x][row of w] = W x for the panels [panel_begin, panel_end): writes columns
    /// 16*panel_begin .. min(16*panel_end, w.rows) of each output row and nothing else.
    /// out_stride in floats. The bits of an output do not depend on x.n nor on the panel range. Uses < 64 KiB of stack.
    void (*matmul)(const PackedMatrix& w, size_t panel_begin, size_t panel_end, const InputRows& x, float* out,
                   size_t out_stride);

    /// Quantises n (a multiple of 32) elements.
    void (*quantize_row)(const float* x, size_t n, ActivationGroup* out);
    /// out = x / sqrt(mean(x^2) + eps) * weight; a null weight means ones.
    void (*rms_norm)(const float* x, const float* weight, size_t n, float eps, float* out);
    /// rms_norm followed by quantize_row, same bits as the two; n a multiple of 32.
    void (*rms_norm_quantize)(const float* x, const float* weight, size_t n, float eps, ActivationGroup* out);

    void (*add)(const float* a, const float* b, size_t n, float* out);
    void (*scale)(const float* x, float factor, size_t n, float* out);
    /// out = silu(gate) * up, silu(x) = x / (1 + exp(-x)).
    void (*silu_mul)(const float* gate, const float* up, size_t n, float* out);
    /// out = gelu(gate) * up, with the tanh form of gelu.
    void (*gelu_mul)(const float* gate, const float* up, size_t n, float* out);
    /// out = cap * tanh(x / cap).
    void (*softcap)(const float* x, float cap, size_t n, float* out);

    /// Rotates the first n_rot elements of each head in place; head h at x + h * head_stride.
    /// cos, sin [n_rot/2] for this row's position. n_rot even.
    void (*rope)(float* x, size_t n_heads, size_t head_stride, size_t n_rot, const float* cos, const float* sin,
                 RopeStyle style);

    void (*to_f16)(const float* x, size_t n, uint16_t* out);
    void (*from_f16)(const uint16_t* x, size_t n, float* out);

    /// Index of the largest; ties go to the lowest index. n >= 1. NaN never wins.
    size_t (*argmax)(const float* x, size_t n);
    /// The largest; -inf for n = 0.
    float (*max)(const float* x, size_t n);
    /// Sum of exp(x - m), in an order that depends on n alone.
    float (*sum_exp)(const float* x, size_t n, float m);
    /// out = exp(x - m).
    void (*exp_shifted)(const float* x, size_t n, float m, float* out);
    /// Index that maximises x[i] * inv_temperature + g(key, i) among x[i] >= threshold, g standard Gumbel noise: a
    /// draw from softmax(x * inv_temperature) cut at the threshold. A pure function of its arguments. Ties: lowest.
    /// n where no element reaches the threshold. Source: Gumbel-max trick (Gumbel 1954; Maddison et al. 2014).
    size_t (*gumbel_argmax)(const float* x, size_t n, float inv_temperature, float threshold, uint64_t key);

    /// Writes one token's key and value [head_dim] f32 into its page: rounded to f16, or quantised as quantize_row
    /// does.
    void (*kv_store)(KvType type, std::byte* page, size_t token_in_page, const float* k, const float* v,
                     size_t head_dim);

    /// Attention of query rows of one sequence over its paged keys and values of one kv head.
    ///
    /// pages    pages[i] holds positions 32i..32i+31; entries wholly outside every row's window are never touched
    /// scratch  attention_scratch_bytes(head_dim), 64-byte aligned
    /// The keys of all rows (up to first_position + n - 1) are already stored; slots beyond a row's own position are
    /// never used, whatever they hold. The bits of a row do not depend on the other rows of the call.
    /// Cost     4 * n * q_heads * keys * head_dim flops. Source: online softmax, Milakov & Gimelshein 2018.
    void (*attention)(const AttentionHead& head, const QueryRows& rows, const std::byte* const* pages,
                      const AttentionOut& out, std::byte* scratch);

    /// The part of `attention` over keys [512 * span, 512 * (span + 1)), for splitting one long row over threads.
    ///
    /// partials  [rows.n * q_heads][attention_partial_floats(head_dim)] f32, written whole
    void (*attention_span)(const AttentionHead& head, const QueryRows& rows, const std::byte* const* pages, size_t span,
                           float* partials, std::byte* scratch);

    /// Joins spans first_span.. in order: same bits as `attention` when every span that a row sees is given.
    ///
    /// partials  [n_spans] arrays of attention_span, `span_stride` floats apart
    void (*attention_merge)(const AttentionHead& head, size_t n_rows, const float* partials, size_t n_spans,
                            size_t span_stride, const AttentionOut& out);
};

}  // namespace cadans::kernels
