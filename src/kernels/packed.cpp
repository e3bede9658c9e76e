// Main idea: sixteen output rows are the lanes of a vector, so a product needs no horizontal sum. A chunk is 64 bytes,
// 16 rows x 4 inputs, row r at bytes 4r..4r+3, which is what a dot-product instruction takes. Per group of 32 inputs:
//   low bits    4 planes of 64 bytes; plane j holds chunk 2j in its low nibbles and chunk 2j+1 in its high nibbles
//   5 bits      one plane; bit c of a byte is the high bit of chunk c
//   6 bits      two planes; bits 2j, 2j+1 of plane p are the high bits of chunk 4p + j
//   8 bits      8 chunks, stored + 128
// Scales per block: f16 d[16], f16 m[16] where there is a minimum, then for Q4_K and Q5_K 8 x 16 bytes with the low
// nibbles of scale and minimum and 4 x 16 bytes whose nibble g/4 of row g%4 holds their high bits (2 + 2); for Q6_K
// s8[16][16]. The three regions (codes, high planes, scales) follow one another through the whole panel.
#include "kernels/packed.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "kernels/blocks.h"

namespace cadans::kernels {

namespace {

static_assert(std::endian::native == std::endian::little, "packed planes are written as little-endian words");

constexpr size_t round_up(size_t n, size_t multiple) noexcept { return (n + multiple - 1) / multiple * multiple; }

/// Calls f.template operator()<type>() for a quantised type.
template <class F>
auto with_quantised(WeightType type, const F& f) {
    switch (type) {
        case WeightType::q4_0:
            return f.template operator()<WeightType::q4_0>();
        case WeightType::q4_1:
            return f.template operator()<WeightType::q4_1>();
        case WeightType::q5_0:
            return f.template operator()<WeightType::q5_0>();
        case WeightType::q5_1:
            return f.template operator()<WeightType::q5_1>();
        case WeightType::q8_0:
            return f.template operator()<WeightType::q8_0>();
        case WeightType::q4_k:
            return f.template operator()<WeightType::q4_k>();
        case WeightType::q5_k:
            return f.template operator()<WeightType::q5_k>();
        case WeightType::q6_k:
            return f.template operator()<WeightType::q6_k>();
        default:
            break;
    }
    check(false, "a quantised weight type");
    return f.template operator()<WeightType::q4_0>();
}

uint32_t load_u32(const uint8_t* at) noexcept {
    uint32_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
}
void store_u32(std::byte* at, uint32_t value) noexcept { std::memcpy(at, &value, sizeof value); }
uint32_t load_u32(const std::byte* at) noexcept { return load_u32(reinterpret_cast<const uint8_t*>(at)); }

/// Where the regions of a panel and the places of row r in them are.
template <WeightType kType, class Byte>
struct PanelView {
    using L = Layout<kType>;
    Byte* codes;
    Byte* high;
    Byte* scales;

    PanelView(Byte* panel, size_t cols) noexcept
        : codes(panel), high(codes + cols / 32 * L::kCodeBytes), scales(high + cols / 32 * L::kHighBytes) {}
};

template <WeightType kType>
void pack_codes(const uint8_t* codes, size_t row, std::byte* low, std::byte* high) noexcept {
    using L = Layout<kType>;
    uint32_t chunk[8];
    for (size_t c = 0; c < 8; ++c) chunk[c] = load_u32(codes + 4 * c);
    if constexpr (L::kBits == 8) {
        for (size_t c = 0; c < 8; ++c) store_u32(low + 64 * c + 4 * row, chunk[c]);
        return;
    }
    for (size_t j = 0; j < 4; ++j)
        store_u32(low + 64 * j + 4 * row, (chunk[2 * j] & 0x0F0F0F0Fu) | (chunk[2 * j + 1] & 0x0F0F0F0Fu) << 4);
    if constexpr (L::kBits == 5) {
        uint32_t plane = 0;
        for (size_t c = 0; c < 8; ++c) plane |= (chunk[c] >> 4 & 0x01010101u) << c;
        store_u32(high + 4 * row, plane);
    }
    if constexpr (L::kBits == 6) {
        for (size_t p = 0; p < 2; ++p) {
            uint32_t plane = 0;
            for (size_t j = 0; j < 4; ++j) plane |= (chunk[4 * p + j] >> 4 & 0x03030303u) << 2 * j;
            store_u32(high + 64 * p + 4 * row, plane);
        }
    }
}

template <WeightType kType>
void unpack_codes(const std::byte* low, const std::byte* high, size_t row, uint8_t* codes) noexcept {
    using L = Layout<kType>;
    for (size_t c = 0; c < 8; ++c) {
        uint32_t chunk;
        if constexpr (L::kBits == 8) {
            chunk = load_u32(low + 64 * c + 4 * row);
        } else {
            chunk = load_u32(low + 64 * (c / 2) + 4 * row) >> 4 * (c % 2) & 0x0F0F0F0Fu;
            if constexpr (L::kBits == 5) chunk |= (load_u32(high + 4 * row) >> c & 0x01010101u) << 4;
            if constexpr (L::kBits == 6)
                chunk |= (load_u32(high + 64 * (c / 4) + 4 * row) >> 2 * (c % 4) & 0x03030303u) << 4;
        }
        std::memcpy(codes + 4 * c, &chunk, sizeof chunk);
    }
}

template <WeightType kType>
void pack_scales(const std::byte* block, size_t row, std::byte* out) noexcept {
    using B = Block<kType>;
    std::memcpy(out + 2 * row, block + B::kScale, 2);
    if constexpr (B::kMin) std::memcpy(out + 32 + 2 * row, block + B::kMinScale, 2);
    std::byte* sub = out + B::kHalfBytes;
    if constexpr (B::kSuper && B::kHalfGroup) {
        for (size_t g = 0; g < 16; ++g) sub[16 * g + row] = block[B::kSubScale + g];
    } else if constexpr (B::kSuper) {
        for (size_t g = 0; g < 8; ++g) {
            const SubScale s = read_sub_scale(block + B::kSubScale, g);
            sub[16 * g + row] = static_cast<std::byte>((s.scale & 15) | (s.min & 15) << 4);
            const int high = (s.scale >> 4) | (s.min >> 4) << 2;
            sub[128 + 16 * (g % 4) + row] |= static_cast<std::byte>(g < 4 ? high : high << 4);
        }
    }
}

template <WeightType kType>
void unpack_scales(const std::byte* scales, size_t row, std::byte* block) noexcept {
    using B = Block<kType>;
    std::memcpy(block + B::kScale, scales + 2 * row, 2);
    if constexpr (B::kMin) std::memcpy(block + B::kMinScale, scales + 32 + 2 * row, 2);
    const std::byte* sub = scales + B::kHalfBytes;
    if constexpr (B::kSuper && B::kHalfGroup) {
        for (size_t g = 0; g < 16; ++g) block[B::kSubScale + g] = sub[16 * g + row];
    } else if constexpr (B::kSuper) {
        for (size_t g = 0; g < 8; ++g) {
            const auto low = static_cast<uint8_t>(sub[16 * g + row]);
            const int high = static_cast<int>(sub[128 + 16 * (g % 4) + row]) >> (g < 4 ? 0 : 4);
            write_sub_scale(block + B::kSubScale, g,
                            {static_cast<uint8_t>((low & 15) | (high & 3) << 4),
                             static_cast<uint8_t>(low >> 4 | (high & 12) << 2)});
        }
    }
}

/// One row's block b out of a panel, in file layout.
template <WeightType kType>
void unpack_block(const std::byte* panel, size_t cols, size_t row, size_t b, std::byte* block) noexcept {
    using B = Block<kType>;
    const PanelView<kType, const std::byte> view(panel, cols);
    uint8_t codes[B::kElements];
    for (size_t g = 0; g < B::kGroupsPerBlock; ++g) {
        const size_t group = b * B::kGroupsPerBlock + g;
        unpack_codes<kType>(view.codes + group * B::kCodeBytes, view.high + group * B::kHighBytes, row, codes + 32 * g);
    }
    std::memset(block, 0, B::kBytes);
    scatter_codes<kType>(codes, block);
    unpack_scales<kType>(view.scales + b * B::kScaleBytes, row, block);
}

template <WeightType kType>
void pack_row(const std::byte* in, size_t row, size_t cols, std::byte* panel) noexcept {
    using B = Block<kType>;
    const PanelView<kType, std::byte> view(panel, cols);
    for (size_t b = 0; b < cols / B::kElements; ++b, in += B::kBytes) {
        uint8_t codes[B::kElements];
        gather_codes<kType>(in, codes);
        for (size_t g = 0; g < B::kGroupsPerBlock; ++g) {
            const size_t group = b * B::kGroupsPerBlock + g;
            pack_codes<kType>(codes + 32 * g, row, view.codes + group * B::kCodeBytes,
                              view.high + group * B::kHighBytes);
        }
        pack_scales<kType>(in, row, view.scales + b * B::kScaleBytes);
    }
}

/// Rows of floats to [k][16 rows].
template <size_t kSize>
void transpose_rows(const std::byte* rows, size_t row_stride, size_t n_rows, size_t cols, std::byte* out) noexcept {
    for (size_t k = 0; k < cols; ++k)
        for (size_t r = 0; r < n_rows; ++r)
            std::memcpy(out + (kPanelRows * k + r) * kSize, rows + r * row_stride + k * kSize, kSize);
}

}  // namespace

size_t panel_bytes(WeightType type, size_t cols) noexcept {
    return round_up(kPanelRows * row_bytes(type, cols), kPanelAlignment);
}

size_t packed_bytes(WeightType type, size_t rows, size_t cols) noexcept {
    return round_up(rows, kPanelRows) / kPanelRows * panel_bytes(type, cols);
}

void pack_panel(WeightType type, const std::byte* rows, size_t row_stride, size_t n_rows, size_t cols,
                std::byte* out) noexcept {
    check(n_rows >= 1 && n_rows <= kPanelRows, "a panel has 1 to 16 rows");
    check(cols % type_info(type).block_elements == 0, "a row is whole blocks");
    std::memset(out, 0, panel_bytes(type, cols));
    if (!type_info(type).quantised) {
        const size_t size = type_info(type).block_bytes;
        if (size == 2)
            transpose_rows<2>(rows, row_stride, n_rows, cols, out);
        else
            transpose_rows<4>(rows, row_stride, n_rows, cols, out);
        return;
    }
    with_quantised(type, [&]<WeightType kType>() {
        for (size_t r = 0; r < n_rows; ++r) pack_row<kType>(rows + r * row_stride, r, cols, out);
    });
}

void unpack_panel(WeightType type, const std::byte* panel, size_t n_rows, size_t cols, std::byte* rows,
                  size_t row_stride) noexcept {
    if (!type_info(type).quantised) {
        const size_t size = type_info(type).block_bytes;
        for (size_t r = 0; r < n_rows; ++r)
            for (size_t k = 0; k < cols; ++k)
                std::memcpy(rows + r * row_stride + k * size, panel + (kPanelRows * k + r) * size, size);
        return;
    }
    with_quantised(type, [&]<WeightType kType>() {
        using B = Block<kType>;
        for (size_t r = 0; r < n_rows; ++r)
            for (size_t b = 0; b < cols / B::kElements; ++b)
                unpack_block<kType>(panel, cols, r, b, rows + r * row_stride + b * B::kBytes);
    });
}

void dequantize_packed_row(const PackedMatrix& w, size_t row, float* out) noexcept {
    check(row < w.rows, "a row of the matrix");
    const std::byte* panel = w.data + row / kPanelRows * panel_bytes(w.type, w.cols);
    const size_t r = row % kPanelRows;
    if (!type_info(w.type).quantised) {
        const size_t size = type_info(w.type).block_bytes;
        for (size_t k = 0; k < w.cols; ++k) dequantize_row(w.type, panel + (kPanelRows * k + r) * size, 1, out + k);
        return;
    }
    with_quantised(w.type, [&]<WeightType kType>() {
        using B = Block<kType>;
        std::byte block[B::kBytes];
        for (size_t b = 0; b < w.cols / B::kElements; ++b) {
            unpack_block<kType>(panel, w.cols, r, b, block);
            dequantize_row(kType, block, B::kElements, out + b * B::kElements);
        }
    });
}

}  // namespace cadans::kernels
