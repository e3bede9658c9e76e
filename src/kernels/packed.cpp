// Main idea: sixteen output rows are the lanes of a vector, so a product needs no horizontal sum. A chunk is 64 bytes,
// 16 rows x 4 inputs, row r at bytes 4r..4r+3, which is what a dot-product instruction takes. Per group of 32 inputs:
//   planes      w bits of a code lie in w planes of 64 bytes; plane p holds chunk 8p/w + j in bits wj .. wj + w - 1
//   2 to 6 bits planes of the low bits (w = 4; 2 for 2- and 3-bit codes), then apart from them planes of the others
//   8 bits      8 chunks, stored + 128
// Scales per block, 16 rows: f16 d[16], f16 m[16] where there is a minimum, or e[16] where there is an exponent. Then
// what the file packs into bytes by itself (Q2_K, Q3_K, Q6_K): byte i of 16 rows, for each i. Q4_K and Q5_K: 8 x 16
// bytes with the low nibbles of scale and minimum and 4 x 16 bytes whose nibble g/4 of row g%4 holds their high bits
// (2 + 2). IQ4_XS: 4 x 16 bytes with the low nibbles of groups g and g + 4, and 2 x 16 bytes whose bits 2(g/2) of row
// g%2 are the high ones. The three regions (codes, high planes, scales) follow one another through the whole panel.
#include "kernels/packed.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "kernels/blocks.h"

namespace cadans::kernels {

namespace {

static_assert(std::endian::native == std::endian::little, "packed planes are written as little-endian words");

constexpr size_t round_up(size_t n, size_t multiple) noexcept { return (n + multiple - 1) / multiple * multiple; }

uint32_t load_u32(const std::byte* at) noexcept {
    uint32_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
}
void store_u32(std::byte* at, uint32_t value) noexcept { std::memcpy(at, &value, sizeof value); }

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

/// kWidth bits, `shift` up, of the 32 codes in `chunk` (four to a word) to a row's places in kWidth planes of 64 bytes.
template <int kWidth>
void put_planes(const uint32_t (&chunk)[8], int shift, size_t row, std::byte* planes) noexcept {
    constexpr size_t kPerPlane = 8 / kWidth;
    constexpr uint32_t kMask = ((1u << kWidth) - 1) * 0x01010101u;
    for (size_t p = 0; p < kWidth; ++p) {
        uint32_t plane = 0;
        for (size_t j = 0; j < kPerPlane; ++j) plane |= (chunk[kPerPlane * p + j] >> shift & kMask) << kWidth * j;
        store_u32(planes + 64 * p + 4 * row, plane);
    }
}

/// The inverse: ors them into `chunk`.
template <int kWidth>
void get_planes(const std::byte* planes, size_t row, int shift, uint32_t (&chunk)[8]) noexcept {
    constexpr size_t kPerPlane = 8 / kWidth;
    constexpr uint32_t kMask = ((1u << kWidth) - 1) * 0x01010101u;
    for (size_t c = 0; c < 8; ++c)
        chunk[c] |= (load_u32(planes + 64 * (c / kPerPlane) + 4 * row) >> kWidth * (c % kPerPlane) & kMask) << shift;
}

template <WeightType kType>
void pack_codes(const uint8_t* codes, size_t row, std::byte* low, std::byte* high) noexcept {
    using L = Layout<kType>;
    uint32_t chunk[8];
    std::memcpy(chunk, codes, sizeof chunk);
    put_planes<L::kLowBits>(chunk, 0, row, low);
    if constexpr (L::kHighBits > 0) put_planes<L::kHighBits>(chunk, L::kLowBits, row, high);
}

template <WeightType kType>
void unpack_codes(const std::byte* low, const std::byte* high, size_t row, uint8_t* codes) noexcept {
    using L = Layout<kType>;
    uint32_t chunk[8] = {};
    get_planes<L::kLowBits>(low, row, 0, chunk);
    if constexpr (L::kHighBits > 0) get_planes<L::kHighBits>(high, row, L::kLowBits, chunk);
    std::memcpy(codes, chunk, sizeof chunk);
}

/// Where group g of IQ4_XS has its low nibble and its two high bits among the sub-scales of a panel: byte and shift.
struct SixPlace {
    size_t low, high;
    int low_shift, high_shift;
};
constexpr SixPlace six_place(size_t g, size_t row) noexcept {
    return {16 * (g % 4) + row, 64 + 16 * (g % 2) + row, g < 4 ? 0 : 4, static_cast<int>(2 * (g / 2))};
}

/// Sub-scales that are whole bytes in the file, `count` of them, to or from a row's places.
void put_bytes(const std::byte* from, size_t count, size_t row, std::byte* sub) noexcept {
    for (size_t g = 0; g < count; ++g) sub[16 * g + row] = from[g];
}
void get_bytes(const std::byte* sub, size_t count, size_t row, std::byte* to) noexcept {
    for (size_t g = 0; g < count; ++g) to[g] = sub[16 * g + row];
}

template <WeightType kType>
void pack_scales(const std::byte* block, size_t row, std::byte* out) noexcept {
    using B = Block<kType>;
    const std::byte* from = block + B::kSubScale;
    std::byte* sub = out + B::kBaseBytes;
    if constexpr (B::kScales == ScaleForm::exponent) {
        out[row] = *from;
        return;
    }
    std::memcpy(out + 2 * row, block + B::kScale, 2);
    if constexpr (B::kMin) std::memcpy(out + 32 + 2 * row, block + B::kMinScale, 2);
    if constexpr (B::kHalfGroup) put_bytes(from, B::kSubBytes / 16, row, sub);
    if constexpr (B::kScales == ScaleForm::six)
        for (size_t g = 0; g < 8; ++g) {
            const SixPlace at = six_place(g, row);
            const int scale = read_six(from, g);
            sub[at.low] |= static_cast<std::byte>((scale & 15) << at.low_shift);
            sub[at.high] |= static_cast<std::byte>(scale >> 4 << at.high_shift);
        }
    if constexpr (B::kScales == ScaleForm::six_and_six)
        for (size_t g = 0; g < 8; ++g) {
            const SubScale s = read_sub_scale(from, g);
            sub[16 * g + row] = static_cast<std::byte>((s.scale & 15) | (s.min & 15) << 4);
            const int high = (s.scale >> 4) | (s.min >> 4) << 2;
            sub[128 + 16 * (g % 4) + row] |= static_cast<std::byte>(g < 4 ? high : high << 4);
        }
}

template <WeightType kType>
void unpack_scales(const std::byte* scales, size_t row, std::byte* block) noexcept {
    using B = Block<kType>;
    std::byte* to = block + B::kSubScale;
    const std::byte* sub = scales + B::kBaseBytes;
    if constexpr (B::kScales == ScaleForm::exponent) {
        *to = scales[row];
        return;
    }
    std::memcpy(block + B::kScale, scales + 2 * row, 2);
    if constexpr (B::kMin) std::memcpy(block + B::kMinScale, scales + 32 + 2 * row, 2);
    if constexpr (B::kHalfGroup) get_bytes(sub, B::kSubBytes / 16, row, to);
    if constexpr (B::kScales == ScaleForm::six)
        for (size_t g = 0; g < 8; ++g) {
            const SixPlace at = six_place(g, row);
            const int low = static_cast<int>(sub[at.low]) >> at.low_shift & 15;
            const int high = static_cast<int>(sub[at.high]) >> at.high_shift & 3;
            write_six(to, g, static_cast<uint8_t>(low | high << 4));
        }
    if constexpr (B::kScales == ScaleForm::six_and_six)
        for (size_t g = 0; g < 8; ++g) {
            const auto low = static_cast<uint8_t>(sub[16 * g + row]);
            const int high = static_cast<int>(sub[128 + 16 * (g % 4) + row]) >> (g < 4 ? 0 : 4);
            write_sub_scale(to, g,
                            {static_cast<uint8_t>((low & 15) | (high & 3) << 4),
                             static_cast<uint8_t>(low >> 4 | (high & 12) << 2)});
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
