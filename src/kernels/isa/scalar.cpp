// The scalar table.
#include "kernels/generic/make_table.h"
#include "kernels/isa/scalar_vector.h"
#include "kernels/isa/tables.h"

extern "C" constinit const cadans::kernels::KernelTable cadans_kernels_scalar =
    cadans::kernels::make_table<cadans::kernels::Scalar>(cadans::kernels::Isa::scalar, "scalar");
