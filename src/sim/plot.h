// Curves of waiting as a picture: what share of all waits was at most how long, under each policy.
#pragma once

#include <string>
#include <vector>

#include "sim/report.h"

namespace cadans::sim {

/// One policy's line.
struct Curve {
    std::string name;
    std::vector<Nanos> ttft, gap;  ///< Report::ttft_curve and gap_curve
};

/// An SVG of two panels, time to first token and gaps between tokens: time on a logarithmic axis to the right, the
/// share of waits at most that long upwards. `title` may hold any text. At most a handful of curves is told apart.
std::string plot_svg(const std::string& title, const std::vector<Curve>& curves);

}  // namespace cadans::sim
