// How the avx512 table cuts its work, apart from its instructions: what the tests' emulation of it shares.
#pragma once

#include <cstddef>

namespace cadans::kernels {

/// 32 registers: 2 x 6 sums of each kind leave 8 for weights, scales and broadcasts.
struct Avx512Shape {
    static constexpr bool kSignedBytes = false;       ///< 8-bit codes enter the dot with 128 taken away
    static constexpr int dot_bits(int) { return 8; }  ///< one instruction for all widths
    static constexpr size_t kTilePanels = 2, kTileRows = 6, kDirectRows = 6, kExpandPanels = 2;
    static constexpr size_t kPassRows = kDirectRows;
    static constexpr size_t kFloatPanels = 2, kFloatRows = 6, kFloatGemvPanels = 8;
    static constexpr size_t kAttentionRows = 6;
    static constexpr size_t score_vectors(size_t) { return 2; }
    static constexpr size_t value_vectors(size_t) { return 4; }
    static constexpr bool kWidensPages = true;  ///< conversion from f16 takes a port of the products
};

}  // namespace cadans::kernels
