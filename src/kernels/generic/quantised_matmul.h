// Products of packed quantised weights with quantised activations, whatever the vector type.
//
// Main idea: integer sums over a group of 32 inputs are exact, so only the f32 folds have an order, and it is the same
// in all three forms: groups ascending, acc = fma(float(isum), w_scale * a_scale, acc), then the minimum's term. One to
// kDirectRows input rows unpack weights in registers; more expand 256 inputs of a panel to bytes in L1 once for all
// rows.
#pragma once

#include "kernels/generic/unroll.h"
#include "kernels/kernel_table.h"
#include "kernels/layout.h"

namespace cadans::kernels {

inline constexpr size_t kExpandGroups = 8;  // 256 inputs: one block of the K formats; 8 to 10 KiB of L1 for two panels

/// Codes of one group, unpacked from the panel as they are asked for.
template <class V, class L>
struct PackedCodes {
    const std::byte* low;
    const std::byte* high;

    template <size_t kChunk>
    [[gnu::always_inline]] typename V::B chunk() const {
        using B = typename V::B;
        if constexpr (L::kBits == 8) return V::bload(low + 64 * kChunk);
        const B plane = V::bload(low + 64 * (kChunk / 2));
        B code = V::bmask(kChunk % 2 == 0 ? plane : V::template bshr<4>(plane), 0x0F);
        if constexpr (L::kBits == 5) {
            const B bits = V::bload(high);
            constexpr int kShift = static_cast<int>(kChunk);
            if constexpr (kShift < 4)
                code = V::bor(code, V::bmask(V::template bshl<4 - kShift>(bits), 0x10));
            else
                code = V::bor(code, V::bmask(V::template bshr<kShift - 4>(bits), 0x10));
        }
        if constexpr (L::kBits == 6) {
            const B bits = V::bload(high + 64 * (kChunk / 4));
            constexpr int kShift = 2 * static_cast<int>(kChunk % 4);
            if constexpr (kShift < 4)
                code = V::bor(code, V::bmask(V::template bshl<4 - kShift>(bits), 0x30));
            else
                code = V::bor(code, V::bmask(V::template bshr<kShift - 4>(bits), 0x30));
        }
        return code;
    }
};

/// Codes of one group, already bytes.
template <class V>
struct ExpandedCodes {
    const std::byte* bytes;

    template <size_t kChunk>
    [[gnu::always_inline]] typename V::B chunk() const {
        return V::bload(bytes + 64 * kChunk);
    }
};

/// A view of a source that starts at a later chunk: the second half of a group.
template <class V, class Source, size_t kFirst>
struct FromChunk {
    const Source& source;

    template <size_t kChunk>
    [[gnu::always_inline]] typename V::B chunk() const {
        return source.template chunk<kChunk + kFirst>();
    }
};

/// f32 scales and minima of the groups of one block; [2 halves per group] for formats with scales per 16.
template <class L>
struct BlockScales {
    alignas(64) float scale[L::kGroupsPerBlock * (L::kHalfGroup ? 2 : 1)][16];
    alignas(64) float min[L::kMin ? L::kGroupsPerBlock : 1][16];
};

template <class V, class L>
[[gnu::always_inline]] inline void read_scales(const std::byte* at, BlockScales<L>& out) {
    using F = typename V::F;
    const F d = V::load_f16(at);
    const std::byte* sub = at + L::kHalfBytes;
    if constexpr (!L::kSuper) {
        V::store(out.scale[0], d);
        if constexpr (L::kMin) V::store(out.min[0], V::load_f16(at + 32));
    } else if constexpr (L::kHalfGroup) {
        for (size_t g = 0; g < 16; ++g) V::store(out.scale[g], V::mul(d, V::to_float(V::widen_s8(sub + 16 * g))));
    } else {
        using B = typename V::B;
        const F neg_dmin = V::sub(V::set1(0.0f), V::load_f16(at + 32));
        const B low0 = V::bload(sub), low1 = V::bload(sub + 64), high = V::bload(sub + 128);
        alignas(64) std::byte scale[128];
        alignas(64) std::byte min[128];
        V::bstore(scale, V::bor(V::bmask(low0, 0x0F), V::template bshl<4>(V::bmask(high, 0x03))));
        V::bstore(scale + 64, V::bor(V::bmask(low1, 0x0F), V::bmask(high, 0x30)));
        V::bstore(min, V::bor(V::bmask(V::template bshr<4>(low0), 0x0F), V::template bshl<2>(V::bmask(high, 0x0C))));
        V::bstore(min + 64,
                  V::bor(V::bmask(V::template bshr<4>(low1), 0x0F), V::template bshr<2>(V::bmask(high, 0xC0))));
        for (size_t g = 0; g < 8; ++g) {
            V::store(out.scale[g], V::mul(d, V::to_float(V::widen_u8(scale + 16 * g))));
            V::store(out.min[g], V::mul(neg_dmin, V::to_float(V::widen_u8(min + 16 * g))));
        }
    }
}

/// One group of kPanels x 16 weight rows times kRows input rows, folded into acc.
template <class V, class L, size_t kPanels, size_t kRows, class Source>
[[gnu::always_inline]] inline void fold_group(const Source (&codes)[kPanels], const float* const (&scale)[kPanels],
                                              const float* const (&min)[kPanels],
                                              const ActivationGroup* const (&x)[kRows],
                                              typename V::F (&acc)[kPanels][kRows]) {
    using I = typename V::I;
    using F = typename V::F;
    // Where the dot takes 8-bit codes as signed numbers there is no zero point left.
    constexpr bool kFoldsZero = L::kZeroShift >= 0 && !(L::kBits == 8 && V::kSignedBytes);
    const int8_t* a[kRows];
    const int8_t* a_hi[kRows];
    I sum[kPanels][kRows];
    unroll<kRows>([&](auto n) __attribute__((always_inline)) {
        a[n.value] = x[n.value]->codes;
        a_hi[n.value] = x[n.value]->codes + 16;
    });
    const auto start = [&](auto of) __attribute__((always_inline)) {
        unroll<kRows>([&](auto n) __attribute__((always_inline)) {
            I first = V::iset1(0);
            if constexpr (kFoldsZero) first = V::template ishl<L::kZeroShift & 31>(V::iset1(of(*x[n.value])));
            unroll<kPanels>([&](auto p) __attribute__((always_inline)) { sum[p.value][n.value] = first; });
        });
    };
    const auto fold = [&](size_t offset) __attribute__((always_inline)) {
        unroll<kRows>([&](auto n) __attribute__((always_inline)) {
            const F a_scale = V::set1(x[n.value]->scale);
            unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
                F& to = acc[p.value][n.value];
                to = V::fma(V::to_float(sum[p.value][n.value]), V::mul(V::load(scale[p.value] + offset), a_scale), to);
                if constexpr (L::kMin) to = V::fma(V::load(min[p.value]), V::set1(x[n.value]->scaled_sum), to);
            });
        });
    };
    if constexpr (L::kHalfGroup) {
        using Second = FromChunk<V, Source, 4>;
        start([](const ActivationGroup& g) __attribute__((always_inline)) { return g.neg_sum - g.neg_sum_hi; });
        V::template dot_panels<L::kBits, 4, kPanels, kRows>(codes, a, sum);
        fold(0);
        start([](const ActivationGroup& g) __attribute__((always_inline)) { return g.neg_sum_hi; });
        if constexpr (kPanels == 1) {
            const Second second[1] = {{codes[0]}};
            V::template dot_panels<L::kBits, 4, kPanels, kRows>(second, a_hi, sum);
        } else {
            const Second second[2] = {{codes[0]}, {codes[1]}};
            V::template dot_panels<L::kBits, 4, kPanels, kRows>(second, a_hi, sum);
        }
        fold(16);
    } else {
        start([](const ActivationGroup& g) __attribute__((always_inline)) { return g.neg_sum; });
        V::template dot_panels<L::kBits, 8, kPanels, kRows>(codes, a, sum);
        fold(0);
    }
}

/// Writes 16 lanes, or the first `rows` of them, to one output row.
template <class V>
[[gnu::always_inline]] inline void store_rows(float* out, typename V::F value, size_t rows) {
    if (rows >= 16) {
        V::store(out, value);
    } else {
        alignas(64) float lanes[16];
        V::store(lanes, value);
        for (size_t r = 0; r < rows; ++r) out[r] = lanes[r];
    }
}

template <class V>
[[gnu::always_inline]] inline typename V::F load_rows(const float* in, size_t rows) {
    if (rows >= 16) return V::load(in);
    alignas(64) float lanes[16] = {};
    for (size_t r = 0; r < rows; ++r) lanes[r] = in[r];
    return V::load(lanes);
}

/// The regions of one packed panel.
template <class L>
struct PanelRegions {
    const std::byte* low;
    const std::byte* high;
    const std::byte* scales;
};

template <class V, class L>
[[gnu::always_inline]] inline PanelRegions<L> regions_of(const std::byte* panel, size_t groups) {
    const std::byte* high = panel + groups * L::kCodeBytes;
    return {panel, high, high + groups * L::kHighBytes};
}

/// One panel times kRows input rows, weights unpacked in registers.
template <class V, class L, size_t kRows>
void direct_panel(const std::byte* panel, size_t groups, const std::byte* x, size_t x_stride, float* out,
                  size_t out_stride, size_t live_rows) {
    const PanelRegions<L> at = regions_of<V, L>(panel, groups);
    typename V::F acc[1][kRows];
    unroll<kRows>([&](auto n) __attribute__((always_inline)) { acc[0][n.value] = V::set1(0.0f); });
    BlockScales<L> scales;
    for (size_t b = 0; b < groups / L::kGroupsPerBlock; ++b) {
        read_scales<V, L>(at.scales + b * L::kScaleBytes, scales);
        for (size_t i = 0; i < L::kGroupsPerBlock; ++i) {
            const size_t g = b * L::kGroupsPerBlock + i;
            const PackedCodes<V, L> codes[1] = {{at.low + g * L::kCodeBytes, at.high + g * L::kHighBytes}};
            const float* scale[1] = {scales.scale[L::kHalfGroup ? 2 * i : i]};
            const float* min[1] = {scales.min[L::kMin ? i : 0]};
            const ActivationGroup* rows[kRows];
            unroll<kRows>([&](auto n) __attribute__((always_inline)) {
                rows[n.value] = reinterpret_cast<const ActivationGroup*>(x + n.value * x_stride) + g;
            });
            fold_group<V, L, 1, kRows>(codes, scale, min, rows, acc);
        }
    }
    unroll<kRows>([&](auto n) __attribute__((always_inline)) {
        store_rows<V>(out + n.value * out_stride, acc[0][n.value], live_rows);
    });
}

/// Up to 256 inputs of one panel as bytes and f32 scales.
template <class L>
struct Expanded {
    alignas(64) std::byte codes[kExpandGroups][512];
    alignas(64) float scale[kExpandGroups * (L::kHalfGroup ? 2 : 1)][16];
    alignas(64) float min[L::kMin ? kExpandGroups : 1][16];
};

template <class V, class L>
void expand(const std::byte* panel, size_t groups, size_t first, size_t count, Expanded<L>& out) {
    constexpr size_t kPerGroup = L::kHalfGroup ? 2 : 1;
    const PanelRegions<L> at = regions_of<V, L>(panel, groups);
    for (size_t i = 0; i < count; ++i) {
        const size_t g = first + i;
        const PackedCodes<V, L> codes{at.low + g * L::kCodeBytes, at.high + g * L::kHighBytes};
        unroll<8>([&](auto c) __attribute__((always_inline)) {
            V::bstore(out.codes[i] + 64 * c.value, codes.template chunk<c.value>());
        });
    }
    BlockScales<L> scales;
    for (size_t i = 0; i < count; i += L::kGroupsPerBlock) {
        read_scales<V, L>(at.scales + (first + i) / L::kGroupsPerBlock * L::kScaleBytes, scales);
        for (size_t g = 0; g < L::kGroupsPerBlock * kPerGroup; ++g)
            V::store(out.scale[i * kPerGroup + g], V::load(scales.scale[g]));
        if constexpr (L::kMin)
            for (size_t g = 0; g < L::kGroupsPerBlock; ++g) V::store(out.min[i + g], V::load(scales.min[g]));
    }
}

/// A register tile: kPanels expanded panels times kRows input rows over `count` groups; out carries acc between calls.
template <class V, class L, size_t kPanels, size_t kRows>
void tile(const Expanded<L>* weights, size_t first, size_t count, const std::byte* x, size_t x_stride, float* out,
          size_t out_stride, size_t live_rows) {
    constexpr size_t kPerGroup = L::kHalfGroup ? 2 : 1;
    const auto live = [&](size_t p) __attribute__((always_inline)) {
        return p + 1 < kPanels ? size_t{16} : live_rows - 16 * (kPanels - 1);
    };
    typename V::F acc[kPanels][kRows];
    unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
        unroll<kRows>([&](auto n) __attribute__((always_inline)) {
            acc[p.value][n.value] =
                first == 0 ? V::set1(0.0f) : load_rows<V>(out + n.value * out_stride + 16 * p.value, live(p.value));
        });
    });
    const ActivationGroup* rows[kRows];
    unroll<kRows>([&](auto n) __attribute__((always_inline)) {
        rows[n.value] = reinterpret_cast<const ActivationGroup*>(x + n.value * x_stride) + first;
    });
    for (size_t g = 0; g < count; ++g) {
        ExpandedCodes<V> codes[kPanels];
        const float* scale[kPanels];
        const float* min[kPanels];
        unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
            codes[p.value].bytes = weights[p.value].codes[g];
            scale[p.value] = weights[p.value].scale[g * kPerGroup];
            min[p.value] = weights[p.value].min[L::kMin ? g : 0];
        });
        fold_group<V, L, kPanels, kRows>(codes, scale, min, rows, acc);
        unroll<kRows>([&](auto n) __attribute__((always_inline)) { ++rows[n.value]; });
    }
    unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
        unroll<kRows>([&](auto n) __attribute__((always_inline)) {
            store_rows<V>(out + n.value * out_stride + 16 * p.value, acc[p.value][n.value], live(p.value));
        });
    });
}

/// kPanels panels times all input rows.
template <class V, class L, size_t kPanels>
void expanded_panels(const std::byte* panel, size_t stride, size_t groups, const InputRows& x, float* out,
                     size_t out_stride, size_t live_rows) {
    Expanded<L> weights[kPanels];
    for (size_t first = 0; first < groups; first += kExpandGroups) {
        const size_t count = groups - first < kExpandGroups ? groups - first : kExpandGroups;
        for (size_t p = 0; p < kPanels; ++p) expand<V, L>(panel + p * stride, groups, first, count, weights[p]);
        for (size_t n = 0; n < x.n; n += V::kTileRows) {
            const size_t left = x.n - n < V::kTileRows ? x.n - n : V::kTileRows;
            with_count<V::kTileRows>(
                left, [&](auto rows) __attribute__((always_inline)) {
                    tile<V, L, kPanels, rows.value>(weights, first, count, x.data + n * x.stride_bytes, x.stride_bytes,
                                                    out + n * out_stride, out_stride, live_rows);
                });
        }
    }
}

/// The whole range of panels; see KernelTable::matmul.
template <class V, WeightType kType>
void quantised_matmul(const PackedMatrix& w, size_t panel_begin, size_t panel_end, const InputRows& x, float* out,
                      size_t out_stride) {
    using L = Layout<kType>;
    const size_t groups = w.cols / kGroup;
    const size_t stride = panel_bytes(kType, w.cols);
    for (size_t p = panel_begin; p < panel_end;) {
        const std::byte* panel = w.data + p * stride;
        float* to = out + 16 * p;
        const size_t live = w.rows - 16 * p;
        if (x.n <= V::kDirectRows) {
            with_count<V::kDirectRows>(
                x.n, [&](auto rows) __attribute__((always_inline)) {
                    direct_panel<V, L, rows.value>(panel, groups, x.data, x.stride_bytes, to, out_stride,
                                                   live < 16 ? live : 16);
                });
            ++p;
        } else if (V::kTilePanels == 2 && p + 2 <= panel_end) {
            expanded_panels<V, L, V::kTilePanels>(panel, stride, groups, x, to, out_stride, live < 32 ? live : 32);
            p += 2;
        } else {
            expanded_panels<V, L, 1>(panel, stride, groups, x, to, out_stride, live < 16 ? live : 16);
            ++p;
        }
    }
}

}  // namespace cadans::kernels
