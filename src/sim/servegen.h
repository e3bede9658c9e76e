// ServeGen's chunks: how often and how long one client of a large service asked, window by window.
#pragma once

#include <string>

#include "base/result.h"
#include "sim/trace_lines.h"
#include "sim/workload.h"

namespace cadans::sim {

/// Draws arrivals from windows of 600 s (start, rate, variation; Gamma whatever pattern is named, since rate and
/// variation fix it) and lengths from the distributions of the file beside it. `lines` stands on the first line.
/// Errors: bad_input with the line; those of reading. Source: Xiang et al. 2025, arXiv 2505.09999.
Result<Workload> read_servegen(const std::string& path, Lines& lines, uint64_t seed);

}  // namespace cadans::sim
