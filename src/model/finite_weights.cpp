#include "model/finite_weights.h"

#include <cstring>

namespace cadans::model {
namespace {

using kernels::WeightType;

// A number is not finite exactly where all bits of its exponent are set.
constexpr uint16_t kHalfExponent = 0x7C00;
constexpr uint16_t kBfloatExponent = 0x7F80;
constexpr uint32_t kSingleExponent = 0x7F800000;

template <class Word>
uint64_t count_words(std::span<const std::byte> bytes, size_t first, size_t stride, Word exponent) noexcept {
    uint64_t count = 0;
    for (size_t at = first; at + sizeof(Word) <= bytes.size(); at += stride) {
        Word word = 0;
        std::memcpy(&word, bytes.data() + at, sizeof(Word));
        count += (word & exponent) == exponent ? 1 : 0;
    }
    return count;
}

/// Exponent bytes of MXFP4 from which on twelve times 2^(e - 128) is beyond f32, NaN (255) among them.
constexpr uint8_t kBeyondSingle = 253;

uint64_t count_exponents(std::span<const std::byte> bytes, size_t stride) noexcept {
    uint64_t count = 0;
    for (size_t at = 0; at < bytes.size(); at += stride) count += static_cast<uint8_t>(bytes[at]) >= kBeyondSingle;
    return count;
}

}  // namespace

uint64_t count_not_finite(WeightType type, std::span<const std::byte> bytes) noexcept {
    const kernels::TypeInfo& info = kernels::type_info(type);
    const auto halves_at = [&](int first) {
        return first < 0 ? 0
                         : count_words<uint16_t>(bytes, static_cast<size_t>(first), info.block_bytes, kHalfExponent);
    };
    switch (type) {
        case WeightType::f32:
            return count_words<uint32_t>(bytes, 0, info.block_bytes, kSingleExponent);
        case WeightType::bf16:
            return count_words<uint16_t>(bytes, 0, info.block_bytes, kBfloatExponent);
        case WeightType::f16:
            return halves_at(0);
        case WeightType::mxfp4:
            return count_exponents(bytes, info.block_bytes);
        default:
            return halves_at(info.scale_at) + halves_at(info.min_at);
    }
}

}  // namespace cadans::model
