// The avx512 table.
#include "kernels/generic/make_table.h"
#include "kernels/isa/avx512_vector.h"
#include "kernels/isa/tables.h"

extern "C" constinit const cadans::kernels::KernelTable cadans_kernels_avx512 =
    cadans::kernels::make_table<cadans::kernels::Avx512>(cadans::kernels::Isa::avx512, "avx512");
