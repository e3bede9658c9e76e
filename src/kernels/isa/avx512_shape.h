// How the avx512 table cuts its work, apart from its instructions: what the tests' emulation of it shares.
#pragma once

#include <cstddef>

namespace cadans::kernels {

/// 32 registers: 2 x 6 sums of each kind leave 8 for weights, scales and broadcasts.
struct Avx512Shape {
    static constexpr bool kSignedBytes = false;       ///< 8-bit codes enter the dot with 128 taken away
    static constexpr int dot_bits(int) { return 8; }  ///< one instruction for all widths
    static constexpr size_t kTilePanels = 2, kTileRows = 6, kDirectRows = 6;
    static constexpr size_t kFloatPanels = 2, kFloatRows = 6, kFloatGemvPanels = 8;
    static constexpr size_t kScoreRows = 6, kValueRows = 6, kValueVectors = 4;
};

}  // namespace cadans::kernels
