#include "kernels/types.h"

#include <bit>
#include <cstring>

#include "kernels/blocks.h"

namespace cadans::kernels {

float f16_to_f32(uint16_t half) noexcept {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    const uint32_t magnitude = half & 0x7FFFu;
    if (magnitude >= 0x7C00u) {  // infinity or NaN, made quiet as the instruction does
        const uint32_t quiet = magnitude > 0x7C00u ? 0x00400000u : 0u;
        return std::bit_cast<float>(sign | 0x7F800000u | quiet | (magnitude & 0x3FFu) << 13);
    }
    if (magnitude < 0x0400u) {  // subnormal: an exact product of small integers
        const float value = static_cast<float>(magnitude) * 0x1p-24f;
        return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
    }
    return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
}

uint16_t f32_to_f16(float value) noexcept {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u | (magnitude >> 13 & 0x3FFu));
    if (magnitude >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);  // 65520 and more round to infinity
    if (magnitude < 0x38800000u) {  // below 2^-14: let the adder round to multiples of 2^-24
        const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
        return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000u));
    }
    const uint32_t rounded = magnitude + 0x0FFFu + (magnitude >> 13 & 1u);
    return static_cast<uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
}

namespace {

float half_at(const std::byte* at) noexcept { return f16_to_f32(load_u16(at)); }

/// 2^(e - 128), subnormal for the two smallest.
float power_at(const std::byte* at) noexcept {
    const auto e = static_cast<uint32_t>(*at);
    return std::bit_cast<float>(e < 2 ? 0x00200000u << e : (e - 1) << 23);
}

/// Scale and minimum (0 where there is none) of part i of a block: 16 elements in formats with half groups, else 32.
struct PartScale {
    float scale, min;
};

template <WeightType kType>
PartScale part_scale(const std::byte* block, size_t i) noexcept {
    using B = Block<kType>;
    const std::byte* sub = block + B::kSubScale;
    if constexpr (B::kScales == ScaleForm::exponent) {
        return {power_at(sub), 0.0f};
    } else {
        const float d = half_at(block + B::kScale);
        const float dmin = B::kMin ? half_at(block + B::kMinScale) : 0.0f;
        if constexpr (B::kScales == ScaleForm::half) return {d, dmin};
        if constexpr (B::kScales == ScaleForm::eight_halves)
            return {d * static_cast<float>(static_cast<int8_t>(sub[i])), 0.0f};
        if constexpr (B::kScales == ScaleForm::six_halves)
            return {d * static_cast<float>(read_six_half(sub, i) - 32), 0.0f};
        if constexpr (B::kScales == ScaleForm::six) return {d * static_cast<float>(read_six(sub, i) - 32), 0.0f};
        if constexpr (B::kScales == ScaleForm::four_and_four) {
            const int both = static_cast<int>(sub[i]);
            return {d * static_cast<float>(both & 15), -(dmin * static_cast<float>(both >> 4))};
        }
        if constexpr (B::kScales == ScaleForm::six_and_six) {
            const SubScale both = read_sub_scale(sub, i);
            return {d * static_cast<float>(both.scale), -(dmin * static_cast<float>(both.min))};
        }
    }
}

/// What a stored code stands for, before its scale.
template <WeightType kType>
int number_of(uint8_t code) noexcept {
    using B = Block<kType>;
    if constexpr (B::kBook == CodeBook::iq4) return kIq4Values[code];
    if constexpr (B::kBook == CodeBook::e2m1) return kE2m1Values[code];
    return static_cast<int>(code) - B::kZero;
}

template <WeightType kType>
void dequantize_block(const std::byte* block, float* out) noexcept {
    using B = Block<kType>;
    constexpr size_t kPart = B::kHalfGroup ? 16 : 32;
    uint8_t codes[B::kElements];
    gather_codes<kType>(block, codes);
    for (size_t i = 0; i < B::kElements / kPart; ++i) {
        const PartScale part = part_scale<kType>(block, i);
        for (size_t e = kPart * i; e < kPart * (i + 1); ++e) {
            const float product = part.scale * static_cast<float>(number_of<kType>(codes[e]));
            out[e] = B::kMin ? product + part.min : product;
        }
    }
}

template <WeightType kType>
void dequantize_blocks(const std::byte* bytes, size_t n, float* out) noexcept {
    const size_t blocks = n / Block<kType>::kElements;
    for (size_t b = 0; b < blocks; ++b)
        dequantize_block<kType>(bytes + b * Block<kType>::kBytes, out + b * Block<kType>::kElements);
}

}  // namespace

void dequantize_row(WeightType type, const std::byte* bytes, size_t n, float* out) noexcept {
    switch (type) {
        case WeightType::f32:
            std::memcpy(out, bytes, n * sizeof(float));
            return;
        case WeightType::f16:
            for (size_t i = 0; i < n; ++i) out[i] = half_at(bytes + 2 * i);
            return;
        case WeightType::bf16:
            for (size_t i = 0; i < n; ++i)
                out[i] = std::bit_cast<float>(static_cast<uint32_t>(load_u16(bytes + 2 * i)) << 16);
            return;
        default:
            with_quantised(type, [&]<WeightType kType>() { dequantize_blocks<kType>(bytes, n, out); });
    }
}

}  // namespace cadans::kernels
