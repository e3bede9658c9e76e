// The number formats of weights as they lie in a model file, with the scalar truth of what each byte means.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cadans::kernels {

enum class WeightType : uint8_t {
    f32,
    f16,
    bf16,
    q4_0,
    q4_1,
    q5_0,
    q5_1,
    q8_0,
    q2_k,
    q3_k,
    q4_k,
    q5_k,
    q6_k,
    iq4_nl,
    iq4_xs,
    mxfp4
};

/// What the table knows of a format: its name, its id in a GGUF file, elements and bytes of a block.
struct TypeInfo {
    WeightType type;
    std::string_view name;
    uint32_t gguf_id;
    uint32_t block_elements;
    uint32_t block_bytes;
    bool quantised;  ///< multiplied with quantised activations; otherwise with f32
    int scale_at;    ///< where a block keeps its f16 scale; -1: nowhere
    int min_at;      ///< the same of its f16 minimum, or of what minima are multiples of
};

inline constexpr size_t kTypeCount = 16;
inline constexpr std::array<TypeInfo, kTypeCount> kTypes = {{
    {WeightType::f32, "F32", 0, 1, 4, false, -1, -1},
    {WeightType::f16, "F16", 1, 1, 2, false, -1, -1},
    {WeightType::bf16, "BF16", 30, 1, 2, false, -1, -1},
    {WeightType::q4_0, "Q4_0", 2, 32, 18, true, 0, -1},
    {WeightType::q4_1, "Q4_1", 3, 32, 20, true, 0, 2},
    {WeightType::q5_0, "Q5_0", 6, 32, 22, true, 0, -1},
    {WeightType::q5_1, "Q5_1", 7, 32, 24, true, 0, 2},
    {WeightType::q8_0, "Q8_0", 8, 32, 34, true, 0, -1},
    {WeightType::q2_k, "Q2_K", 10, 256, 84, true, 80, 82},
    {WeightType::q3_k, "Q3_K", 11, 256, 110, true, 108, -1},
    {WeightType::q4_k, "Q4_K", 12, 256, 144, true, 0, 2},
    {WeightType::q5_k, "Q5_K", 13, 256, 176, true, 0, 2},
    {WeightType::q6_k, "Q6_K", 14, 256, 210, true, 208, -1},
    {WeightType::iq4_nl, "IQ4_NL", 20, 32, 18, true, 0, -1},
    {WeightType::iq4_xs, "IQ4_XS", 23, 256, 136, true, 0, -1},
    {WeightType::mxfp4, "MXFP4", 39, 32, 17, true, -1, -1},
}};

/// The facts of a format. Thread-safe, as everything here.
constexpr const TypeInfo& type_info(WeightType type) noexcept { return kTypes[static_cast<size_t>(type)]; }

/// The format with this id in a GGUF file, or nothing when these kernels do not know it.
constexpr std::optional<WeightType> type_from_gguf(uint32_t gguf_id) noexcept {
    for (const TypeInfo& info : kTypes)
        if (info.gguf_id == gguf_id) return info.type;
    return std::nullopt;
}

/// Bytes of a row of `n` elements in the file. `n` is a multiple of the block's elements.
constexpr size_t row_bytes(WeightType type, size_t n) noexcept {
    return n / type_info(type).block_elements * type_info(type).block_bytes;
}

/// The values of a row of `n` elements in file layout, bit for bit as the format defines them.
///
/// bytes   row_bytes(type, n) bytes, any alignment
/// n       a multiple of the block's elements
/// out     [n] f32
/// Cost    scalar; for embeddings, packing and tests, not for products
/// Source  block layouts of the GGUF format
void dequantize_row(WeightType type, const std::byte* bytes, size_t n, float* out) noexcept;

/// IEEE half to single and back (round to nearest even), without instructions for it. NaN stays NaN.
float f16_to_f32(uint16_t half) noexcept;
uint16_t f32_to_f16(float value) noexcept;

}  // namespace cadans::kernels
