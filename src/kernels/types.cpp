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

template <WeightType kType>
void dequantize_block(const std::byte* block, float* out) noexcept {
    using B = Block<kType>;
    uint8_t codes[B::kElements];
    gather_codes<kType>(block, codes);
    if constexpr (kType == WeightType::q6_k) {
        const float d = half_at(block + B::kScale);
        for (size_t e = 0; e < B::kElements; ++e) {
            const auto sub = static_cast<int8_t>(block[B::kSubScale + e / 16]);
            out[e] = d * static_cast<float>(sub) * static_cast<float>(static_cast<int>(codes[e]) - B::kZero);
        }
    } else if constexpr (B::kSuper) {
        const float d = half_at(block + B::kScale);
        const float dmin = half_at(block + B::kMinScale);
        for (size_t g = 0; g < 8; ++g) {
            const SubScale sub = read_sub_scale(block + B::kSubScale, g);
            const float scale = d * static_cast<float>(sub.scale);
            const float min = dmin * static_cast<float>(sub.min);
            for (size_t e = 32 * g; e < 32 * g + 32; ++e) out[e] = scale * static_cast<float>(codes[e]) - min;
        }
    } else {
        const float d = half_at(block + B::kScale);
        const float m = B::kMin ? half_at(block + B::kMinScale) : 0.0f;
        for (size_t e = 0; e < B::kElements; ++e) {
            const float product = d * static_cast<float>(static_cast<int>(codes[e]) - B::kZero);
            out[e] = B::kMin ? product + m : product;
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
        case WeightType::q4_0:
            return dequantize_blocks<WeightType::q4_0>(bytes, n, out);
        case WeightType::q4_1:
            return dequantize_blocks<WeightType::q4_1>(bytes, n, out);
        case WeightType::q5_0:
            return dequantize_blocks<WeightType::q5_0>(bytes, n, out);
        case WeightType::q5_1:
            return dequantize_blocks<WeightType::q5_1>(bytes, n, out);
        case WeightType::q8_0:
            return dequantize_blocks<WeightType::q8_0>(bytes, n, out);
        case WeightType::q4_k:
            return dequantize_blocks<WeightType::q4_k>(bytes, n, out);
        case WeightType::q5_k:
            return dequantize_blocks<WeightType::q5_k>(bytes, n, out);
        case WeightType::q6_k:
            return dequantize_blocks<WeightType::q6_k>(bytes, n, out);
    }
}

}  // namespace cadans::kernels
