// Codes and scales of packed panels, as vectors.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/layout.h"

namespace cadans::kernels {

inline constexpr size_t kExpandGroups = 8;  // 256 inputs: one block of the K formats

/// Where the dot takes 8-bit numbers as signed ones, a code book gives them so, and without their zero point.
template <class V, class Form>
inline constexpr bool kSignedBook = Form::kBook != CodeBook::none&& Form::kWidth == 8 && V::kSignedBytes;

/// The numbers of a book, with the zero point added unless they are signed.
template <class V, class Form>
[[gnu::always_inline]] inline typename V::B look_up(typename V::B codes) {
    struct Table {
        uint8_t at[16];
    };
    static constexpr Table kTable = [] {
        Table table{};
        for (size_t i = 0; i < 16; ++i) {
            const int value = Form::kBook == CodeBook::iq4 ? kIq4Values[i] : kE2m1Values[i];
            table.at[i] = static_cast<uint8_t>(kSignedBook<V, Form> ? value : value + (1 << Form::kZeroShift));
        }
        return table;
    }();
    return V::blookup(kTable.at, codes);
}

/// `width` bits of chunk kChunk out of planes (see packed.cpp), moved up to bit kTo.
template <class V, int kWidth, int kTo, size_t kChunk>
[[gnu::always_inline]] inline typename V::B plane_bits(const std::byte* planes) {
    constexpr size_t kPerPlane = 8 / kWidth;
    constexpr int kUp = kTo - kWidth * static_cast<int>(kChunk % kPerPlane);
    constexpr auto kMask = static_cast<uint8_t>(((1u << kWidth) - 1) << kTo);
    const auto plane = V::bload(planes + 64 * (kChunk / kPerPlane));
    if constexpr (kWidth == 8) return plane;
    if constexpr (kUp > 0) return V::bmask(V::template bshl<kUp>(plane), kMask);
    if constexpr (kUp < 0) return V::bmask(V::template bshr<-kUp>(plane), kMask);
    return V::bmask(plane, kMask);
}

/// Codes of one group, unpacked from the panel (and looked up) as they are asked for.
template <class V, class Form>
struct PackedCodes {
    static constexpr bool kExpanded = false;
    static constexpr bool kSigned = kSignedBook<V, Form>;  ///< 8-bit numbers are signed already
    const std::byte* low;
    const std::byte* high;

    template <size_t kChunk>
    [[gnu::always_inline]] typename V::B chunk() const {
        auto code = plane_bits<V, Form::kLowBits, 0, kChunk>(low);
        if constexpr (Form::kHighBits > 0)
            code = V::bor(code, plane_bits<V, Form::kHighBits, Form::kLowBits, kChunk>(high));
        if constexpr (Form::kBook != CodeBook::none) return look_up<V, Form>(code);
        return code;
    }
};

/// Codes of one group, already bytes.
template <class V>
struct ExpandedCodes {
    static constexpr bool kExpanded = true;
    static constexpr bool kSigned = V::kSignedBytes;
    const std::byte* bytes;

    template <size_t kChunk>
    [[gnu::always_inline]] typename V::B chunk() const {
        return V::bload(bytes + 64 * kChunk);
    }
};

/// A view of a source that starts at a later chunk: the second half of a group.
template <class V, class Source, size_t kFirst>
struct FromChunk {
    static constexpr bool kExpanded = Source::kExpanded, kSigned = Source::kSigned;
    const Source& source;

    template <size_t kChunk>
    [[gnu::always_inline]] typename V::B chunk() const {
        return source.template chunk<kChunk + kFirst>();
    }
};

/// f32 scales and minima of up to kExpandGroups groups; [2 halves per group] for formats with scales per 16.
struct GroupScales {
    alignas(64) float scale[2 * kExpandGroups][16];
    alignas(64) float min[2 * kExpandGroups][16];
};

/// Reads the scales of groups first .. first + count; both are multiples of the format's block.
using ReadScales = void (*)(const std::byte* scales, size_t first, size_t count, GroupScales& out);

/// 6-bit numbers as bytes: those whose low bits are the low nibbles of `low`, and those of the high ones; bits 4 and 5
/// of each are given in place.
template <class V>
[[gnu::always_inline]] inline void join_sixes(typename V::B low, typename V::B first, typename V::B second,
                                              std::byte* to_first, std::byte* to_second) {
    V::bstore(to_first, V::bor(V::bmask(low, 0x0F), first));
    V::bstore(to_second, V::bor(V::bmask(V::template bshr<4>(low), 0x0F), second));
}

/// scale = d * (byte - 32) of `count` sub-scales.
template <class V>
[[gnu::always_inline]] inline void scale_sixes(typename V::F d, const std::byte* bytes, size_t count,
                                               float (*out)[16]) {
    for (size_t g = 0; g < count; ++g)
        V::store(out[g], V::mul(d, V::to_float(V::isub(V::widen_u8(bytes + 16 * g), V::iset1(32)))));
}

/// f16 d and eight 6-bit scales: what IQ4_XS keeps.
template <class V>
void six_scales(const std::byte* at, GroupScales& out) {
    const std::byte* sub = at + 32;
    alignas(64) std::byte high[64];  // bits 0, 1: groups 0 to 3; bits 4, 5: groups 4 to 7
    for (size_t i = 0; i < 4; ++i) {
        uint64_t eight;
        __builtin_memcpy(&eight, sub + 64 + 8 * i, 8);
        const uint64_t even = eight & 0x3333333333333333u, odd = eight >> 2 & 0x3333333333333333u;
        __builtin_memcpy(high + 8 * i, &even, 8);
        __builtin_memcpy(high + 32 + 8 * i, &odd, 8);
    }
    const auto bits = V::bload(high);
    alignas(64) std::byte scale[128];
    join_sixes<V>(V::bload(sub), V::template bshl<4>(V::bmask(bits, 0x03)), V::bmask(bits, 0x30), scale, scale + 64);
    scale_sixes<V>(V::load_f16(at), scale, 8, out.scale);
}

/// f16 d and sixteen 6-bit scales: what Q3_K keeps.
template <class V>
void six_half_scales(const std::byte* at, GroupScales& out) {
    const std::byte* sub = at + 32;
    const auto bits = V::bload(sub + 128);
    alignas(64) std::byte scale[256];
    join_sixes<V>(V::bload(sub), V::template bshl<4>(V::bmask(bits, 0x03)), V::bmask(bits, 0x30), scale, scale + 128);
    join_sixes<V>(V::bload(sub + 64), V::template bshl<2>(V::bmask(bits, 0x0C)),
                  V::bmask(V::template bshr<2>(bits), 0x30), scale + 64, scale + 192);
    scale_sixes<V>(V::load_f16(at), scale, 16, out.scale);
}

/// f16 d and dmin, and sixteen bytes of a 4-bit scale below a 4-bit minimum: what Q2_K keeps.
template <class V>
void four_and_four_scales(const std::byte* at, GroupScales& out) {
    const auto d = V::load_f16(at);
    const auto neg_dmin = V::sub(V::set1(0.0f), V::load_f16(at + 32));
    for (size_t g = 0; g < 16; ++g) {
        const auto both = V::widen_u8(at + 64 + 16 * g);
        V::store(out.scale[g], V::mul(d, V::to_float(V::iand(both, V::iset1(15)))));
        V::store(out.min[g], V::mul(neg_dmin, V::to_float(V::template ishr<4>(both))));
    }
}

/// f16 d and dmin, and eight pairs of 6-bit numbers: what Q4_K and Q5_K keep.
template <class V>
void six_and_six_scales(const std::byte* at, GroupScales& out) {
    using B = typename V::B;
    const auto d = V::load_f16(at);
    const auto neg_dmin = V::sub(V::set1(0.0f), V::load_f16(at + 32));
    const std::byte* sub = at + 64;
    const B low0 = V::bload(sub), low1 = V::bload(sub + 64), high = V::bload(sub + 128);
    alignas(64) std::byte scale[128];
    alignas(64) std::byte min[128];
    V::bstore(scale, V::bor(V::bmask(low0, 0x0F), V::template bshl<4>(V::bmask(high, 0x03))));
    V::bstore(scale + 64, V::bor(V::bmask(low1, 0x0F), V::bmask(high, 0x30)));
    V::bstore(min, V::bor(V::bmask(V::template bshr<4>(low0), 0x0F), V::template bshl<2>(V::bmask(high, 0x0C))));
    V::bstore(min + 64, V::bor(V::bmask(V::template bshr<4>(low1), 0x0F), V::template bshr<2>(V::bmask(high, 0xC0))));
    for (size_t g = 0; g < 8; ++g) {
        V::store(out.scale[g], V::mul(d, V::to_float(V::widen_u8(scale + 16 * g))));
        V::store(out.min[g], V::mul(neg_dmin, V::to_float(V::widen_u8(min + 16 * g))));
    }
}

/// 2^(e - 128) of sixteen bytes e; the two smallest are subnormal.
template <class V>
[[gnu::always_inline]] inline typename V::F load_exponents(const std::byte* at) {
    const auto e = V::widen_u8(at), one = V::iset1(1);
    const auto small = V::as_float(V::template ishl<21>(V::iadd(e, one)));
    const auto normal = V::as_float(V::template ishl<23>(V::isub(e, one)));
    return V::select_gt(V::set1(2.0f), V::to_float(e), small, normal);
}

template <class V, class L>
void read_scales(const std::byte* scales, size_t first, size_t count, GroupScales& out) {
    const std::byte* at = scales + first / L::kGroupsPerBlock * L::kScaleBytes;
    if constexpr (L::kScales == ScaleForm::half)
        for (size_t g = 0; g < count; ++g, at += L::kScaleBytes) {
            V::store(out.scale[g], V::load_f16(at));
            if constexpr (L::kMin) V::store(out.min[g], V::load_f16(at + 32));
        }
    if constexpr (L::kScales == ScaleForm::exponent)
        for (size_t g = 0; g < count; ++g, at += L::kScaleBytes) V::store(out.scale[g], load_exponents<V>(at));
    if constexpr (L::kScales == ScaleForm::eight_halves) {
        const auto d = V::load_f16(at);
        for (size_t g = 0; g < 16; ++g)
            V::store(out.scale[g], V::mul(d, V::to_float(V::widen_s8(at + L::kBaseBytes + 16 * g))));
    }
    if constexpr (L::kScales == ScaleForm::six) six_scales<V>(at, out);
    if constexpr (L::kScales == ScaleForm::six_halves) six_half_scales<V>(at, out);
    if constexpr (L::kScales == ScaleForm::four_and_four) four_and_four_scales<V>(at, out);
    if constexpr (L::kScales == ScaleForm::six_and_six) six_and_six_scales<V>(at, out);
}

}  // namespace cadans::kernels
