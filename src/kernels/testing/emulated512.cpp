#include "kernels/testing/emulated512.h"

#include "kernels/generic/make_table.h"
#include "kernels/isa/avx512_shape.h"
#include "kernels/isa/scalar_vector.h"

namespace cadans::kernels {
namespace {

/// Plain lanes in place of registers; everything that is cut, is cut as Avx512 cuts it.
struct Emulated512 : Scalar, Avx512Shape {
    using Avx512Shape::dot_bits;
    using Avx512Shape::kAttentionRows;
    using Avx512Shape::kDirectRows;
    using Avx512Shape::kExpandPanels;
    using Avx512Shape::kFloatGemvPanels;
    using Avx512Shape::kFloatPanels;
    using Avx512Shape::kFloatRows;
    using Avx512Shape::kPassRows;
    using Avx512Shape::kSignedBytes;
    using Avx512Shape::kTilePanels;
    using Avx512Shape::kTileRows;
    using Avx512Shape::kWidensPages;
    using Avx512Shape::score_vectors;
    using Avx512Shape::value_vectors;
};

}  // namespace
}  // namespace cadans::kernels

extern "C" constinit const cadans::kernels::KernelTable cadans_kernels_emulated512 =
    cadans::kernels::make_table<cadans::kernels::Emulated512>(cadans::kernels::Isa::avx512, "emulated512");
