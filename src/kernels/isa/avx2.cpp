// The avx2 table.
#include "kernels/generic/make_table.h"
#include "kernels/isa/avx2_vector.h"
#include "kernels/isa/tables.h"

extern "C" constinit const cadans::kernels::KernelTable cadans_kernels_avx2 =
    cadans::kernels::make_table<cadans::kernels::Avx2>(cadans::kernels::Isa::avx2, "avx2");
