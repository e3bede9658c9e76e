// Codes and scales of packed panels, as vectors.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/layout.h"

namespace cadans::kernels {

inline constexpr size_t kExpandGroups = 8;  // 256 inputs: one block of the K formats

/// Codes of one group, unpacked from the panel as they are asked for.
template <class V, int kBits>
struct PackedCodes {
    static constexpr bool kExpanded = false;
    const std::byte* low;
    const std::byte* high;

    template <size_t kChunk>
    [[gnu::always_inline]] typename V::B chunk() const {
        using B = typename V::B;
        if constexpr (kBits == 8) return V::bload(low + 64 * kChunk);
        const B plane = V::bload(low + 64 * (kChunk / 2));
        B code = V::bmask(kChunk % 2 == 0 ? plane : V::template bshr<4>(plane), 0x0F);
        if constexpr (kBits == 5) {
            const B bits = V::bload(high);
            constexpr int kShift = static_cast<int>(kChunk);
            if constexpr (kShift < 4)
                code = V::bor(code, V::bmask(V::template bshl<4 - kShift>(bits), 0x10));
            else
                code = V::bor(code, V::bmask(V::template bshr<kShift - 4>(bits), 0x10));
        }
        if constexpr (kBits == 6) {
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
    static constexpr bool kExpanded = true;
    const std::byte* bytes;

    template <size_t kChunk>
    [[gnu::always_inline]] typename V::B chunk() const {
        return V::bload(bytes + 64 * kChunk);
    }
};

/// A view of a source that starts at a later chunk: the second half of a group.
template <class V, class Source, size_t kFirst>
struct FromChunk {
    static constexpr bool kExpanded = Source::kExpanded;
    const Source& source;

    template <size_t kChunk>
    [[gnu::always_inline]] typename V::B chunk() const {
        return source.template chunk<kChunk + kFirst>();
    }
};

/// f32 scales and minima of up to kExpandGroups groups; scale [2 halves per group] for formats with scales per 16.
struct GroupScales {
    alignas(64) float scale[2 * kExpandGroups][16];
    alignas(64) float min[kExpandGroups][16];
};

/// Reads the scales of groups first .. first + count; both are multiples of the format's block.
using ReadScales = void (*)(const std::byte* scales, size_t first, size_t count, GroupScales& out);

template <class V, class L>
void read_scales(const std::byte* scales, size_t first, size_t count, GroupScales& out) {
    using F = typename V::F;
    const std::byte* at = scales + first / L::kGroupsPerBlock * L::kScaleBytes;
    if constexpr (!L::kSuper) {
        for (size_t g = 0; g < count; ++g, at += L::kScaleBytes) {
            V::store(out.scale[g], V::load_f16(at));
            if constexpr (L::kMin) V::store(out.min[g], V::load_f16(at + 32));
        }
    } else if constexpr (L::kHalfGroup) {
        const F d = V::load_f16(at);
        const std::byte* sub = at + L::kHalfBytes;
        for (size_t g = 0; g < 16; ++g) V::store(out.scale[g], V::mul(d, V::to_float(V::widen_s8(sub + 16 * g))));
    } else {
        using B = typename V::B;
        const F d = V::load_f16(at);
        const F neg_dmin = V::sub(V::set1(0.0f), V::load_f16(at + 32));
        const std::byte* sub = at + L::kHalfBytes;
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

}  // namespace cadans::kernels
