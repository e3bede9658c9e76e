// What the tests of kernels share: the machine's tables, numbers by seed, random weights in file layout.
#pragma once

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "base/random.h"
#include "kernels/blocks.h"
#include "kernels/table.h"

namespace cadans::kernels::test {

/// Every table that this machine runs; the scalar one comes first.
inline std::vector<const KernelTable*> tables() {
    std::vector<const KernelTable*> out;
    for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512})
        if (isa_available(isa)) out.push_back(&kernel_table(isa));
    return out;
}

/// A stream of numbers, the same for the same seed on every machine.
class Numbers {
  public:
    explicit Numbers(uint64_t seed) : state_(mix64(seed)) {}
    uint64_t bits() { return mix64(state_++); }
    size_t below(size_t n) { return static_cast<size_t>(bits() % n); }
    /// Uniform in [-1, 1).
    float signed_unit() { return static_cast<float>(static_cast<int64_t>(bits() >> 40) - (1 << 23)) * 0x1p-23f; }
    std::vector<float> floats(size_t n, float size = 1.0f) {
        std::vector<float> out(n);
        for (float& x : out) x = size * signed_unit();
        return out;
    }

  private:
    uint64_t state_;
};

/// 64-byte aligned bytes.
class Aligned {
  public:
    explicit Aligned(size_t n)
        : size_(n), data_(static_cast<std::byte*>(std::aligned_alloc(64, (n + 127) / 64 * 64))) {}
    ~Aligned() { std::free(data_); }
    Aligned(const Aligned&) = delete;
    Aligned& operator=(const Aligned&) = delete;
    std::byte* data() { return data_; }
    size_t size() const { return size_; }

  private:
    size_t size_;
    std::byte* data_;
};

inline void put_f16(std::byte* at, float value) {
    const uint16_t half = f32_to_f16(value);
    std::memcpy(at, &half, 2);
}

/// Random rows in file layout with sensible scales; codes and sub-scales take all their values.
inline std::vector<std::byte> random_weights(WeightType type, size_t rows, size_t cols, Numbers& numbers) {
    std::vector<std::byte> out(rows * row_bytes(type, cols));
    const TypeInfo& info = type_info(type);
    if (!info.quantised) {
        for (size_t i = 0; i < rows * cols; ++i) {
            const float value = numbers.signed_unit();
            uint32_t bits;
            std::memcpy(&bits, &value, 4);
            const uint16_t half = type == WeightType::f16 ? f32_to_f16(value) : static_cast<uint16_t>(bits >> 16);
            if (type == WeightType::f32)
                std::memcpy(out.data() + 4 * i, &value, 4);
            else
                std::memcpy(out.data() + 2 * i, &half, 2);
        }
        return out;
    }
    for (std::byte& b : out) b = static_cast<std::byte>(numbers.bits() & 255);
    for (size_t at = 0; at < out.size(); at += info.block_bytes) {
        const float size = type == WeightType::q6_k ? 0.01f : 0.05f;
        if (info.scale_at >= 0) put_f16(&out[at + static_cast<size_t>(info.scale_at)], size * numbers.signed_unit());
        if (info.min_at >= 0) put_f16(&out[at + static_cast<size_t>(info.min_at)], size * numbers.signed_unit());
        if (type == WeightType::mxfp4) out[at] = static_cast<std::byte>(118 + numbers.below(8));
    }
    return out;
}

/// A packed matrix that owns its bytes.
struct Packed {
    Packed(WeightType type, const std::vector<std::byte>& file, size_t rows, size_t cols)
        : bytes(packed_bytes(type, rows, cols)), matrix{bytes.data(), rows, cols, type} {
        const size_t stride = row_bytes(type, cols);
        for (size_t p = 0; p < matrix.panels(); ++p)
            pack_panel(type, file.data() + p * 16 * stride, stride, std::min<size_t>(16, rows - 16 * p), cols,
                       bytes.data() + p * panel_bytes(type, cols));
    }
    Aligned bytes;
    PackedMatrix matrix;
};

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace cadans::kernels::test
