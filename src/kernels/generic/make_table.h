// The table of one vector type: every generic kernel, instantiated.
#pragma once

#include "kernels/generic/attention.h"
#include "kernels/generic/choose.h"
#include "kernels/generic/float_matmul.h"
#include "kernels/generic/quantised_matmul.h"
#include "kernels/generic/rows.h"

namespace cadans::kernels {

template <class V>
void any_matmul(const PackedMatrix& w, size_t panel_begin, size_t panel_end, const InputRows& x, float* out,
                size_t out_stride) {
    if (x.n == 0 || panel_begin >= panel_end) return;
    unroll<kTypeCount>([&](auto i) __attribute__((always_inline)) {
        constexpr TypeInfo kInfo = kTypes[i.value];
        if (w.type != kInfo.type) return;
        if constexpr (kInfo.quantised)
            quantised_matmul<V, kInfo.type>(w, panel_begin, panel_end, x, out, out_stride);
        else
            float_matmul<V, kInfo.type>(w, panel_begin, panel_end, x, out, out_stride);
    });
}

template <class V>
constexpr KernelTable make_table(Isa isa, const char* name) {
    return {
        .isa = isa,
        .name = name,
        .matmul = any_matmul<V>,
        .quantize_row = Rows<V>::quantize_row,
        .rms_norm = Rows<V>::rms_norm,
        .rms_norm_quantize = Rows<V>::rms_norm_quantize,
        .add = Rows<V>::add,
        .scale = Rows<V>::scale,
        .silu_mul = Rows<V>::silu_mul,
        .gelu_mul = Rows<V>::gelu_mul,
        .softcap = Rows<V>::softcap,
        .rope = Rows<V>::rope,
        .to_f16 = Rows<V>::to_f16,
        .from_f16 = Rows<V>::from_f16,
        .argmax = Choose<V>::argmax,
        .max = Rows<V>::max,
        .sum_exp = Rows<V>::sum_exp,
        .exp_shifted = Rows<V>::exp_shifted,
        .gumbel_argmax = Choose<V>::gumbel_argmax,
        .kv_store = AnyAttention<V>::kv_store,
        .attention = AnyAttention<V>::attention,
        .attention_span = AnyAttention<V>::attention_span,
        .attention_merge = AnyAttention<V>::Halves::attention_merge,
    };
}

}  // namespace cadans::kernels
