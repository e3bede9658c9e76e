// The avx512 table's logic on any machine: its cuts and loops over sixteen plain lanes. For tests.
#pragma once

#include "kernels/reference/test_data.h"

extern "C" {
extern const cadans::kernels::KernelTable cadans_kernels_emulated512;
}

namespace cadans::kernels::test {

/// The tables that this machine runs natively, and the emulation.
inline std::vector<const KernelTable*> all_tables() {
    std::vector<const KernelTable*> out = tables();
    out.push_back(&cadans_kernels_emulated512);
    return out;
}

}  // namespace cadans::kernels::test
