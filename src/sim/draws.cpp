#include "sim/draws.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/random.h"

namespace cadans::sim {

double Draws::uniform() { return static_cast<double>((mix64(mix64(seed_) ^ ++count_) >> 11) + 1) * 0x1p-53; }

uint64_t Draws::below(uint64_t count) { return mix64(mix64(seed_) ^ ++count_) % count; }

/// Box and Muller 1958.
double Draws::normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
}

double Draws::exponential(double mean) { return -std::log(uniform()) * mean; }

/// Marsaglia and Tsang 2000; a shape below 1 is drawn as shape + 1 and drawn back.
double Draws::gamma(double mean, double cv) {
    const double shape = 1 / (cv * cv);
    const double boost = shape < 1 ? std::pow(uniform(), 1 / shape) : 1;
    const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    while (true) {
        const double x = normal();
        const double v = std::pow(1 + c * x, 3);
        if (v <= 0 || std::log(uniform()) >= 0.5 * x * x + d - d * v + d * std::log(v)) continue;
        return d * v * boost * mean / shape;
    }
}

uint32_t Draws::length(double median, double spread, uint32_t most) {
    const double drawn = spread == 0 ? median : median * std::exp(spread * normal());
    return static_cast<uint32_t>(std::clamp(drawn, 1.0, static_cast<double>(most)));
}

}  // namespace cadans::sim
