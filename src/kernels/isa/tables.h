// One factory per instruction set; calling one only hands out a pointer and needs no special instruction.
#pragma once

#include "kernels/kernel_table.h"

extern "C" {
extern const cadans::kernels::KernelTable cadans_kernels_scalar;
extern const cadans::kernels::KernelTable cadans_kernels_avx2;
extern const cadans::kernels::KernelTable cadans_kernels_avx512;
}
