// The block layouts of the file formats: where a block keeps its scales, and its codes as plain bytes.
//
// Source: the GGUF format's block definitions. Included only by units built for the baseline instruction set.
#pragma once

#include <cstring>
#include <utility>

#include "base/check.h"
#include "kernels/layout.h"

namespace cadans::kernels {

inline uint16_t load_u16(const std::byte* at) noexcept {
    uint16_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

/// Offsets inside one block of the file. kQuants: low bits; kHigh: bits above them; kSubScale: packed sub-scales, or
/// the exponent.
template <WeightType kType, size_t sub_scale, size_t high, size_t quants>
struct BlockOf : Layout<kType> {
    static constexpr size_t kElements = type_info(kType).block_elements;
    static constexpr size_t kBytes = type_info(kType).block_bytes;
    static constexpr size_t kScale = static_cast<size_t>(type_info(kType).scale_at);
    static constexpr size_t kMinScale = static_cast<size_t>(type_info(kType).min_at);
    static constexpr size_t kSubScale = sub_scale, kHigh = high, kQuants = quants;
    static constexpr int kZero = Layout<kType>::kZeroShift < 0 ? 0 : 1 << (Layout<kType>::kZeroShift & 31);
};

template <WeightType>
struct Block;
template <>
struct Block<WeightType::q4_0> : BlockOf<WeightType::q4_0, 0, 0, 2> {};
template <>
struct Block<WeightType::q4_1> : BlockOf<WeightType::q4_1, 0, 0, 4> {};
template <>
struct Block<WeightType::q5_0> : BlockOf<WeightType::q5_0, 0, 2, 6> {};
template <>
struct Block<WeightType::q5_1> : BlockOf<WeightType::q5_1, 0, 4, 8> {};
template <>
struct Block<WeightType::q8_0> : BlockOf<WeightType::q8_0, 0, 0, 2> {};
template <>
struct Block<WeightType::q2_k> : BlockOf<WeightType::q2_k, 0, 0, 16> {};
template <>
struct Block<WeightType::q3_k> : BlockOf<WeightType::q3_k, 96, 0, 32> {};
template <>
struct Block<WeightType::q4_k> : BlockOf<WeightType::q4_k, 4, 0, 16> {};
template <>
struct Block<WeightType::q5_k> : BlockOf<WeightType::q5_k, 4, 16, 48> {};
template <>
struct Block<WeightType::q6_k> : BlockOf<WeightType::q6_k, 192, 128, 0> {};
template <>
struct Block<WeightType::iq4_nl> : BlockOf<WeightType::iq4_nl, 0, 0, 2> {};
template <>
struct Block<WeightType::iq4_xs> : BlockOf<WeightType::iq4_xs, 2, 0, 8> {};
template <>
struct Block<WeightType::mxfp4> : BlockOf<WeightType::mxfp4, 0, 0, 1> {};

/// Calls f.template operator()<type>() for the one quantised type that `type` is; another stops the process.
template <class F>
void with_quantised(WeightType type, const F& f) {
    check(type_info(type).quantised, "a quantised weight type");
    const auto try_one = [&]<size_t kIndex>() {
        if constexpr (kTypes[kIndex].quantised)
            if (type == kTypes[kIndex].type) f.template operator()<kTypes[kIndex].type>();
    };
    [&]<size_t... kIndex>(std::index_sequence<kIndex...>) { (try_one.template operator()<kIndex>(), ...); }
    (std::make_index_sequence<kTypeCount>{});
}

struct SubScale {
    uint8_t scale;  ///< 0..63
    uint8_t min;    ///< 0..63
};

/// Group g's scale and minimum from the 12 packed bytes of Q4_K and Q5_K.
inline SubScale read_sub_scale(const std::byte* packed, size_t g) noexcept {
    const auto* s = reinterpret_cast<const uint8_t*>(packed);
    if (g < 4) return {static_cast<uint8_t>(s[g] & 63), static_cast<uint8_t>(s[g + 4] & 63)};
    return {static_cast<uint8_t>((s[g + 4] & 15) | (s[g - 4] >> 6) << 4),
            static_cast<uint8_t>((s[g + 4] >> 4) | (s[g] >> 6) << 4)};
}

/// The inverse: ors group g into 12 zeroed bytes.
inline void write_sub_scale(std::byte* packed, size_t g, SubScale sub) noexcept {
    auto* s = reinterpret_cast<uint8_t*>(packed);
    if (g < 4) {
        s[g] = static_cast<uint8_t>(s[g] | sub.scale);
        s[g + 4] = static_cast<uint8_t>(s[g + 4] | sub.min);
    } else {
        s[g + 4] = static_cast<uint8_t>(s[g + 4] | (sub.scale & 15) | (sub.min & 15) << 4);
        s[g - 4] = static_cast<uint8_t>(s[g - 4] | (sub.scale >> 4) << 6);
        s[g] = static_cast<uint8_t>(s[g] | (sub.min >> 4) << 6);
    }
}

/// Group g's 6-bit scale from the 2 + 4 packed bytes of IQ4_XS (high bits first).
inline uint8_t read_six(const std::byte* packed, size_t g) noexcept {
    const auto* s = reinterpret_cast<const uint8_t*>(packed);
    return static_cast<uint8_t>((s[2 + g / 2] >> 4 * (g % 2) & 15) | (s[g / 4] >> 2 * (g % 4) & 3) << 4);
}

/// The inverse: ors group g into 6 zeroed bytes.
inline void write_six(std::byte* packed, size_t g, uint8_t scale) noexcept {
    auto* s = reinterpret_cast<uint8_t*>(packed);
    s[2 + g / 2] = static_cast<uint8_t>(s[2 + g / 2] | (scale & 15) << 4 * (g % 2));
    s[g / 4] = static_cast<uint8_t>(s[g / 4] | (scale >> 4) << 2 * (g % 4));
}

/// The 6-bit scale of 16 elements, the h-th of a block, from the 12 packed bytes of Q3_K.
inline uint8_t read_six_half(const std::byte* packed, size_t h) noexcept {
    const auto* s = reinterpret_cast<const uint8_t*>(packed);
    return static_cast<uint8_t>((s[h % 8] >> 4 * (h / 8) & 15) | (s[8 + h % 4] >> 2 * (h / 4) & 3) << 4);
}

/// Calls visit(element, byte of low bits, shift of low bits, byte of high bits, shift of high bits) for each element.
template <WeightType kType, class Visit>
inline void visit_codes(const Visit& visit) noexcept {
    using B = Block<kType>;
    if constexpr (kType == WeightType::q8_0) {
        for (size_t e = 0; e < 32; ++e) visit(e, B::kQuants + e, 0, 0, 0);
    } else if constexpr (!B::kSuper) {
        for (size_t e = 0; e < 16; ++e) visit(e, B::kQuants + e, 0, B::kHigh + e / 8, static_cast<int>(e % 8));
        for (size_t e = 16; e < 32; ++e) visit(e, B::kQuants + e - 16, 4, B::kHigh + e / 8, static_cast<int>(e % 8));
    } else if constexpr (kType == WeightType::iq4_xs) {
        for (size_t q = 0; q < 8; ++q)  // q counts runs of 32 elements
            for (size_t l = 0; l < 32; ++l) visit(32 * q + l, B::kQuants + 16 * q + l % 16, l < 16 ? 0 : 4, 0, 0);
    } else if constexpr (B::kLowBits == 2) {
        for (size_t q = 0; q < 8; ++q)
            for (size_t l = 0; l < 32; ++l)
                visit(32 * q + l, B::kQuants + 32 * (q / 4) + l, static_cast<int>(2 * (q % 4)), B::kHigh + l,
                      static_cast<int>(q));
    } else if constexpr (kType == WeightType::q6_k) {
        for (size_t q = 0; q < 8; ++q)
            for (size_t l = 0; l < 32; ++l)
                visit(32 * q + l, 64 * (q / 4) + 32 * (q % 2) + l, q % 4 < 2 ? 0 : 4, B::kHigh + 32 * (q / 4) + l,
                      static_cast<int>(2 * (q % 4)));
    } else {
        for (size_t q = 0; q < 8; ++q)
            for (size_t l = 0; l < 32; ++l)
                visit(32 * q + l, B::kQuants + 32 * (q / 2) + l, q % 2 == 0 ? 0 : 4, B::kHigh + l, static_cast<int>(q));
    }
}

/// The codes of a block as unsigned bytes, element order; 8-bit codes become unsigned by adding 128.
template <WeightType kType>
inline void gather_codes(const std::byte* block, uint8_t* codes) noexcept {
    using B = Block<kType>;
    const auto* bytes = reinterpret_cast<const uint8_t*>(block);
    if constexpr (B::kBits == 5 && !B::kSuper) {  // four codes at a time: the fifth bits lie in one word
        uint32_t high;
        std::memcpy(&high, block + B::kHigh, sizeof high);
        for (size_t c = 0; c < 8; ++c) {
            uint32_t low;
            std::memcpy(&low, block + B::kQuants + 4 * (c % 4), sizeof low);
            const uint32_t spread = (high >> 4 * c & 15u) * 0x00204081u & 0x01010101u;  // bit i to byte i
            const uint32_t four = (low >> (c < 4 ? 0 : 4) & 0x0F0F0F0Fu) | spread << 4;
            std::memcpy(codes + 4 * c, &four, sizeof four);
        }
        return;
    }
    constexpr unsigned kLow = (1u << B::kLowBits) - 1, kHigh = (1u << B::kHighBits) - 1;
    visit_codes<kType>([&](size_t e, size_t low, int low_shift, size_t high, int high_shift) {
        unsigned code = bytes[low] >> low_shift & kLow;
        if constexpr (B::kBits == 8) code ^= 0x80u;
        if constexpr (B::kHighBits > 0) code |= (bytes[high] >> high_shift & kHigh) << B::kLowBits;
        codes[e] = static_cast<uint8_t>(code);
    });
}

/// The inverse of gather_codes: ors the codes into a zeroed block.
template <WeightType kType>
inline void scatter_codes(const uint8_t* codes, std::byte* block) noexcept {
    using B = Block<kType>;
    auto* bytes = reinterpret_cast<uint8_t*>(block);
    constexpr unsigned kLow = (1u << B::kLowBits) - 1;
    visit_codes<kType>([&](size_t e, size_t low, int low_shift, size_t high, int high_shift) {
        const unsigned code = B::kBits == 8 ? codes[e] ^ 0x80u : codes[e];
        bytes[low] = static_cast<uint8_t>(bytes[low] | (code & kLow) << low_shift);
        if constexpr (B::kHighBits > 0)
            bytes[high] = static_cast<uint8_t>(bytes[high] | (code >> B::kLowBits) << high_shift);
    });
}

}  // namespace cadans::kernels
