// Products of packed quantised weights with quantised activations, whatever the vector type.
//
// Main idea: integer sums over a group of 32 inputs are exact, so only the f32 folds have an order, and it is the same
// in all forms: groups ascending, acc = fma(float(isum), w_scale * a_scale, acc), then the minimum's term. Few input
// rows unpack weights in registers, kDirectRows at a time, and meanwhile the next panel comes from memory; more than
// kPassRows expand 256 inputs of a panel to bytes in L1 once for all rows.
#pragma once

#include "kernels/generic/fetch.h"
#include "kernels/generic/tile.h"

namespace cadans::kernels {

/// How far ahead of the products weights are asked from memory when they are used once.
inline constexpr size_t kFetchAhead = 4096;

/// The regions of one packed panel.
struct PanelRegions {
    const std::byte* low;
    const std::byte* high;
    const std::byte* scales;
};

template <class V, class L>
[[gnu::always_inline]] inline PanelRegions regions_of(const std::byte* panel, size_t groups) {
    const std::byte* high = panel + groups * L::kCodeBytes;
    return {panel, high, high + groups * L::kHighBytes};
}

/// What comes from memory while a panel is multiplied, evenly over its groups.
struct Ahead {
    const std::byte* from;
    size_t bytes;
};

/// One panel times kRows input rows, weights unpacked in registers. Not inlined, so that its loop can be found and
/// judged.
template <class V, class Form, size_t kRows>
[[gnu::noinline]] void direct_panel(const PanelRegions& panel, size_t groups, ReadScales read, const TileRows<V>& at,
                                    const Ahead& ahead) {
    using Shape = ShapeOf<V, Form>;
    typename V::F acc[1][kRows];
    const ActivationGroup* rows[kRows];
    unroll<kRows>([&](auto n) __attribute__((always_inline)) {
        acc[0][n.value] = V::set1(0.0f);
        rows[n.value] = reinterpret_cast<const ActivationGroup*>(at.x + n.value * at.x_stride);
    });
    const typename V::I zero = zero_pairs<V>(Form::kZeroShift);
    GroupScales scales;
    const size_t pace = ahead.bytes / groups;
    size_t fetched = 0;
    for (size_t first = 0; first < groups; first += kExpandGroups) {
        const size_t count = groups - first < kExpandGroups ? groups - first : kExpandGroups;
        read(panel.scales, first, count, scales);
        for (size_t i = 0; i < count; ++i) {
            const size_t g = first + i;
            for (; fetched < (g + 1) * pace; fetched += kLine) __builtin_prefetch(ahead.from + fetched, 0, 2);
            const PackedCodes<V, Form> codes[1] = {
                {panel.low + g * Form::kCodeBytes, panel.high + g * Form::kHighBytes}};
            const float* scale[1] = {scales.scale[Form::kHalfGroup ? 2 * i : i]};
            const float* min[1] = {scales.min[Form::kHalfGroup ? 2 * i : i]};
            fold_group<V, Shape, 1, kRows>(codes, scale, min, rows, zero, acc);
            unroll<kRows>([&](auto n) __attribute__((always_inline)) { ++rows[n.value]; });
        }
    }
    unroll<kRows>([&](auto n) __attribute__((always_inline)) {
        store_rows<V>(at.out + n.value * at.out_stride, acc[0][n.value], at.live_rows);
    });
}

/// A panel times up to V::kPassRows input rows, kDirectRows at a time. The regions of a panel, and panels, lie one
/// after the other. A single pass asks for what lies some way ahead, so that the memory never waits for a region's or a
/// panel's end; several share the panel behind this one among them. `begins`: nobody asked for this panel; `ends`:
/// none is behind it.
template <class V, class Form>
void direct_passes(const std::byte* panel, size_t stride, size_t groups, ReadScales read, size_t n, bool begins,
                   bool ends, const TileRows<V>& at) {
    const PanelRegions regions{panel, panel + groups * Form::kCodeBytes,
                               panel + groups * (Form::kCodeBytes + Form::kHighBytes)};
    const size_t passes = (n + V::kDirectRows - 1) / V::kDirectRows;
    const size_t own = passes == 1 || begins ? 1 : 0;  // passes that fetch this panel themselves
    const size_t share = passes > own ? stride / (passes - own) : 0;
    size_t pass = 0;
    in_even_parts<1, V::kDirectRows>(
        n, [&](size_t row, auto rows) __attribute__((always_inline)) {
            const Ahead ahead = pass < own ? Ahead{panel + kFetchAhead, stride}
                                           : Ahead{panel + stride + (pass - own) * share, ends ? 0 : share};
            direct_panel<V, Form, rows.value>(regions, groups, read, at.from(row, 0, 16), ahead);
            ++pass;
        });
}

/// A form apart from what expanding does not ask: forms that agree otherwise share its code.
template <class L>
using CodesOf = FormOf<L::kBits, L::kBook == CodeBook::none ? -1 : L::kZeroShift, false, false, L::kBook>;

template <class V, class Form>
void expand(const PanelRegions& panel, size_t first, size_t count, ReadScales read, Expanded& out) {
    using Codes = PackedCodes<V, Form>;
    for (size_t i = 0; i < count; ++i) {
        const size_t g = first + i;
        const Codes codes{panel.low + g * Form::kCodeBytes, panel.high + g * Form::kHighBytes};
        unroll<8>([&](auto c) __attribute__((always_inline)) {
            auto chunk = codes.template chunk<c.value>();
            if constexpr (!Codes::kSigned) chunk = V::template expanded<Form::kWidth>(chunk);
            V::bstore(out.codes[i] + 64 * c.value, chunk);
        });
    }
    read(panel.scales, first, count, out.scales);
}

/// What expand() will read, on its way.
template <class L>
void fetch_block(const std::byte* panel, size_t groups, size_t first, size_t count) {
    const std::byte* high = panel + groups * L::kCodeBytes;
    const std::byte* scales = high + groups * L::kHighBytes;
    fetch_ahead(panel + first * L::kCodeBytes, count * L::kCodeBytes);
    if constexpr (L::kHighBytes > 0) fetch_ahead(high + first * L::kHighBytes, count * L::kHighBytes);
    fetch_ahead(scales + first / L::kGroupsPerBlock * L::kScaleBytes, count / L::kGroupsPerBlock * L::kScaleBytes);
}

/// `panels` (a multiple of kPanels) expanded panels times all input rows. Rows come in tiles of nearly equal size, so
/// that a remainder costs little and few sizes are compiled; while a tile's rows are in L1, every panel meets them.
template <class V, class Shape, size_t kPanels>
void tile_rows(const Expanded* weights, size_t panels, size_t first, size_t count, int zero_shift, size_t n,
               const TileRows<V>& at) {
    constexpr size_t kMost = V::kTileRows;
    in_even_parts<smallest_share(V::kPassRows + 1, kMost), kMost>(
        n, [&](size_t row, auto rows) __attribute__((always_inline)) {
            for (size_t p = 0; p < panels; p += kPanels)
                tile<V, Shape, kPanels, rows.value>(weights + p, first, count, zero_shift,
                                                    at.from(row, 16 * p, 16 * kPanels));
        });
}

/// `panels` (a multiple of kPanels, at most V::kExpandPanels) panels times all input rows.
template <class V, class L, size_t kPanels>
void expanded_panels(const std::byte* panel, size_t stride, size_t panels, size_t groups, size_t n,
                     const TileRows<V>& at) {
    Expanded weights[V::kExpandPanels];
    for (size_t first = 0; first < groups; first += kExpandGroups) {
        const size_t count = groups - first < kExpandGroups ? groups - first : kExpandGroups;
        for (size_t p = 0; p < panels; ++p)
            expand<V, CodesOf<L>>(regions_of<V, L>(panel + p * stride, groups), first, count, read_scales<V, L>,
                                  weights[p]);
        // The next to be expanded come while these meet the rows.
        const bool last = first + kExpandGroups >= groups;
        for (size_t p = 0; p < panels; ++p)
            fetch_block<L>(panel + (last ? panels + p : p) * stride, groups, last ? 0 : first + kExpandGroups,
                           kExpandGroups);
        tile_rows<V, ShapeOf<V, typename L::Form>, kPanels>(weights, panels, first, count, L::kZeroShift, n, at);
    }
}

/// The whole range of panels; see KernelTable::matmul.
template <class V, WeightType kType>
void quantised_matmul(const PackedMatrix& w, size_t panel_begin, size_t panel_end, const InputRows& x, float* out,
                      size_t out_stride) {
    using L = Layout<kType>;
    using Form = typename L::Form;
    const size_t groups = w.cols / kGroup;
    const size_t stride = panel_bytes(kType, w.cols);
    for (size_t p = panel_begin; p < panel_end;) {
        const std::byte* panel = w.data + p * stride;
        const size_t live = w.rows - 16 * p;
        const auto to = [&](size_t panels) {
            return TileRows<V>{x.data, x.stride_bytes, out + 16 * p, out_stride,
                               live < 16 * panels ? live : 16 * panels};
        };
        if constexpr (V::kPassRows > 0) {
            if (x.n <= V::kPassRows) {
                direct_passes<V, Form>(panel, stride, groups, read_scales<V, L>, x.n, p == panel_begin,
                                       p + 1 == panel_end, to(1));
                ++p;
                continue;
            }
        }
        const size_t left = panel_end - p < V::kExpandPanels ? panel_end - p : V::kExpandPanels;
        const size_t whole = left / V::kTilePanels * V::kTilePanels;
        if (whole > 0) {
            expanded_panels<V, L, V::kTilePanels>(panel, stride, whole, groups, x.n, to(whole));
            p += whole;
        } else {
            expanded_panels<V, L, 1>(panel, stride, 1, groups, x.n, to(1));
            ++p;
        }
    }
}

}  // namespace cadans::kernels
