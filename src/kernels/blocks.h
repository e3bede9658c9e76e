// The block layouts of the file formats: where a block keeps its scales, and its codes as plain bytes.
//
// Source: the GGUF format's block definitions. Included only by units built for the baseline instruction set.
#pragma once

#include <cstring>

#include "kernels/layout.h"

namespace cadans::kernels {

inline uint16_t load_u16(const std::byte* at) noexcept {
    uint16_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

/// Offsets inside one block of the file. kQuants: low bits; kHigh: bits above them; kSubScale: packed 6-bit or s8.
template <WeightType kType, size_t scale, size_t min_scale, size_t sub_scale, size_t high, size_t quants>
struct BlockOf : Layout<kType> {
    static constexpr size_t kElements = type_info(kType).block_elements;
    static constexpr size_t kBytes = type_info(kType).block_bytes;
    static constexpr size_t kScale = scale, kMinScale = min_scale, kSubScale = sub_scale;
    static constexpr size_t kHigh = high, kQuants = quants;
    static constexpr int kZero = Layout<kType>::kZeroShift < 0 ? 0 : 1 << (Layout<kType>::kZeroShift & 31);
};

template <WeightType>
struct Block;
template <>
struct Block<WeightType::q4_0> : BlockOf<WeightType::q4_0, 0, 0, 0, 0, 2> {};
template <>
struct Block<WeightType::q4_1> : BlockOf<WeightType::q4_1, 0, 2, 0, 0, 4> {};
template <>
struct Block<WeightType::q5_0> : BlockOf<WeightType::q5_0, 0, 0, 0, 2, 6> {};
template <>
struct Block<WeightType::q5_1> : BlockOf<WeightType::q5_1, 0, 2, 0, 4, 8> {};
template <>
struct Block<WeightType::q8_0> : BlockOf<WeightType::q8_0, 0, 0, 0, 0, 2> {};
template <>
struct Block<WeightType::q4_k> : BlockOf<WeightType::q4_k, 0, 2, 4, 0, 16> {};
template <>
struct Block<WeightType::q5_k> : BlockOf<WeightType::q5_k, 0, 2, 4, 16, 48> {};
template <>
struct Block<WeightType::q6_k> : BlockOf<WeightType::q6_k, 208, 0, 192, 128, 0> {};

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

/// Calls visit(element, byte of low bits, shift of low bits, byte of high bits, shift of high bits) for each element.
template <WeightType kType, class Visit>
inline void visit_codes(const Visit& visit) noexcept {
    using B = Block<kType>;
    if constexpr (kType == WeightType::q8_0) {
        for (size_t e = 0; e < 32; ++e) visit(e, B::kQuants + e, 0, 0, 0);
    } else if constexpr (!B::kSuper) {
        for (size_t e = 0; e < 16; ++e) visit(e, B::kQuants + e, 0, B::kHigh + e / 8, static_cast<int>(e % 8));
        for (size_t e = 16; e < 32; ++e) visit(e, B::kQuants + e - 16, 4, B::kHigh + e / 8, static_cast<int>(e % 8));
    } else if constexpr (kType == WeightType::q6_k) {
        for (size_t q = 0; q < 8; ++q)  // q counts runs of 32 elements
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
    visit_codes<kType>([&](size_t e, size_t low, int low_shift, size_t high, int high_shift) {
        unsigned code = bytes[low];
        if constexpr (B::kBits == 8) code ^= 0x80u;
        if constexpr (B::kBits < 8) code = code >> low_shift & 15u;
        if constexpr (B::kBits == 5) code |= (bytes[high] >> high_shift & 1u) << 4;
        if constexpr (B::kBits == 6) code |= (bytes[high] >> high_shift & 3u) << 4;
        codes[e] = static_cast<uint8_t>(code);
    });
}

/// The inverse of gather_codes: ors the codes into a zeroed block.
template <WeightType kType>
inline void scatter_codes(const uint8_t* codes, std::byte* block) noexcept {
    using B = Block<kType>;
    auto* bytes = reinterpret_cast<uint8_t*>(block);
    visit_codes<kType>([&](size_t e, size_t low, int low_shift, size_t high, int high_shift) {
        const unsigned code = codes[e];
        if constexpr (B::kBits == 8) bytes[low] = static_cast<uint8_t>(code ^ 0x80u);
        if constexpr (B::kBits < 8) bytes[low] = static_cast<uint8_t>(bytes[low] | (code & 15u) << low_shift);
        if constexpr (B::kBits == 5 || B::kBits == 6)
            bytes[high] = static_cast<uint8_t>(bytes[high] | (code >> 4) << high_shift);
    });
}

}  // namespace cadans::kernels
