// A weight matrix in panels of 16 output rows: lossless, the size of the file's, ready for any instruction set.
//
// Inside a panel the codes come first, then the planes of high bits, then the scales; see packed.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/types.h"

namespace cadans::kernels {

inline constexpr size_t kPanelRows = 16;       ///< lanes of one vector of f32: output rows that advance together
inline constexpr size_t kPanelAlignment = 64;  ///< every panel starts on a cache line

/// A packed matrix; borrows its bytes. y = W x, W has `rows` outputs and `cols` inputs. Thread rule: immutable.
struct PackedMatrix {
    const std::byte* data = nullptr;  ///< 64-byte aligned, packed_bytes(type, rows, cols) bytes
    size_t rows = 0;
    size_t cols = 0;
    WeightType type = WeightType::f32;

    constexpr size_t panels() const noexcept { return (rows + kPanelRows - 1) / kPanelRows; }
};

/// Bytes of one panel; a multiple of 64. `cols` is a multiple of the type's block.
size_t panel_bytes(WeightType type, size_t cols) noexcept;

/// Bytes of the whole packed matrix: rows are padded to a multiple of 16.
size_t packed_bytes(WeightType type, size_t rows, size_t cols) noexcept;

/// Packs up to 16 rows into one panel.
///
/// rows        first row in file layout; row r starts at rows + r * row_stride; any alignment
/// row_stride  bytes from row to row, normally row_bytes(type, cols)
/// n_rows      1..16; missing rows become zeros
/// out         panel_bytes(type, cols) bytes, 64-byte aligned
/// Thread rule: thread-safe on different panels. Cost: memory-bound copy.
void pack_panel(WeightType type, const std::byte* rows, size_t row_stride, size_t n_rows, size_t cols,
                std::byte* out) noexcept;

/// The inverse of pack_panel, byte for byte.
void unpack_panel(WeightType type, const std::byte* panel, size_t n_rows, size_t cols, std::byte* rows,
                  size_t row_stride) noexcept;

/// The values of one row of a packed matrix, bit-equal with dequantize_row on the file's bytes; for tied embeddings.
///
/// out  [w.cols] f32
void dequantize_packed_row(const PackedMatrix& w, size_t row, float* out) noexcept;

}  // namespace cadans::kernels
