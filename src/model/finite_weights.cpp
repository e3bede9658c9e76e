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

}  // namespace

uint64_t count_not_finite(WeightType type, std::span<const std::byte> bytes) noexcept {
    const size_t block = kernels::type_info(type).block_bytes;
    const auto halves_at = [&](size_t first) { return count_words<uint16_t>(bytes, first, block, kHalfExponent); };
    switch (type) {
        case WeightType::f32:
            return count_words<uint32_t>(bytes, 0, block, kSingleExponent);
        case WeightType::bf16:
            return count_words<uint16_t>(bytes, 0, block, kBfloatExponent);
        case WeightType::f16:
        case WeightType::q4_0:
        case WeightType::q5_0:
        case WeightType::q8_0:
            return halves_at(0);
        case WeightType::q4_1:
        case WeightType::q5_1:
        case WeightType::q4_k:
        case WeightType::q5_k:
            return halves_at(0) + halves_at(2);
        case WeightType::q6_k:
            return halves_at(block - sizeof(uint16_t));
    }
    return 0;
}

}  // namespace cadans::model
