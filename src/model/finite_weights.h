// Whether stored weights stand for finite numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/types.h"

namespace cadans::model {

/// How many of the floating-point numbers among these stored weights (scales and minima of blocks, or the
/// weights themselves) are infinite or no number. `bytes` is whole blocks. Thread-safe. Cost: one pass.
uint64_t count_not_finite(kernels::WeightType type, std::span<const std::byte> bytes) noexcept;

}  // namespace cadans::model
