#include "kernels/table.h"

#include <cstdint>

#include "base/check.h"
#include "kernels/cpu.h"
#include "kernels/isa/tables.h"

namespace cadans::kernels {

namespace {

constexpr Isa kAll[] = {Isa::scalar, Isa::avx2, Isa::avx512};

const KernelTable& table_of(Isa isa) noexcept {
    switch (isa) {
        case Isa::avx2:
            return cadans_kernels_avx2;
        case Isa::avx512:
            return cadans_kernels_avx512;
        case Isa::scalar:
            break;
    }
    return cadans_kernels_scalar;
}

std::string available_names() {
    std::string names;
    for (const Isa isa : kAll)
        if (isa_available(isa)) names += (names.empty() ? "" : ", ") + std::string(table_of(isa).name);
    return names;
}

}  // namespace

bool isa_available(Isa isa) noexcept {
    const CpuFeatures cpu = cpu_features();
    switch (isa) {
        case Isa::scalar:
            return true;
        case Isa::avx2:
            return cpu.avx2;
        case Isa::avx512:
            return cpu.avx2 && cpu.avx512_vnni;
    }
    return false;
}

Result<Isa> choose_isa(const std::optional<std::string>& forced) {
    if (forced) {
        for (const Isa isa : kAll) {
            if (*forced != table_of(isa).name) continue;
            if (isa_available(isa)) return isa;
            return unsupported("this machine cannot run the instruction set " + *forced +
                               "; it can run: " + available_names());
        }
        return unsupported("no instruction set is called \"" + *forced +
                           "\"; this machine can run: " + available_names());
    }
    if (isa_available(Isa::avx512)) return Isa::avx512;
    return isa_available(Isa::avx2) ? Isa::avx2 : Isa::scalar;
}

const KernelTable& kernel_table(Isa isa) {
    check(isa_available(isa), "the instruction set was chosen among those of this machine");
    return table_of(isa);
}

}  // namespace cadans::kernels
