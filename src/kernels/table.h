// The choice of a kernel table: what this machine can run, and what someone forced.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "kernels/kernel_table.h"

namespace cadans::kernels {

/// The best instruction set of this machine, or the forced one by name ("scalar", "avx2", "avx512").
/// Errors: unsupported, when the name is unknown or the machine lacks it; the message names what there is.
Result<Isa> choose_isa(const std::optional<std::string>& forced = std::nullopt);

/// Whether this machine, and its operating system, can run the table.
bool isa_available(Isa isa) noexcept;

/// The table of an available instruction set; asking for another is our bug and stops.
const KernelTable& kernel_table(Isa isa);

}  // namespace cadans::kernels
