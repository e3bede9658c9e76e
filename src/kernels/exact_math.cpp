// Main idea: double holds 53 bits, a table wants 24, so plain series with a careful reduction leave room to spare.
#include "kernels/exact_math.h"

#include <bit>
#include <cstdint>

namespace cadans::kernels {

namespace {

constexpr double kLn2High = 0x1.62e42fefap-1;     // ln 2 in 33 bits, so that its product with an exponent is exact
constexpr double kLn2Low = 0x1.cf79abc9e3b4p-40;  // the rest
constexpr double kHalfPiHigh = 0x1.921fb544p0;    // pi/2 in pieces of 33 bits: Cody & Waite 1980
constexpr double kHalfPiMiddle = 0x1.0b4611a6p-34;
constexpr double kHalfPiLow = 0x1.3198a2e037073p-69;
constexpr double kRoundingBias = 0x1.8p52;  // adding and taking it away rounds to the nearest integer

double nearest(double x) noexcept { return (x + kRoundingBias) - kRoundingBias; }

/// x = quadrant * pi/2 + rest, |rest| <= pi/4.
double reduce(double x, uint64_t& quadrant) noexcept {
    const double n = nearest(x * 0x1.45f306dc9c883p-1);
    quadrant = static_cast<uint64_t>(static_cast<int64_t>(n));
    return ((x - n * kHalfPiHigh) - n * kHalfPiMiddle) - n * kHalfPiLow;
}

double sin_series(double x) noexcept {
    const double s = x * x;
    double sum = 0.0;
    for (int k = 19; k >= 3; k -= 2) sum = (1.0 - sum) * s / static_cast<double>(k * (k - 1));
    return x - x * sum;
}

double cos_series(double x) noexcept {
    const double s = x * x;
    double sum = 0.0;
    for (int k = 20; k >= 2; k -= 2) sum = (1.0 - sum) * s / static_cast<double>(k * (k - 1));
    return 1.0 - sum;
}

}  // namespace

double exact_exp(double x) noexcept {
    if (x > 709.0) return std::bit_cast<double>(uint64_t{0x7FF} << 52);
    if (x < -708.0) return 0.0;
    const double n = nearest(x * 0x1.71547652b82fep0);
    const double r = (x - n * kLn2High) - n * kLn2Low;
    double sum = 1.0;
    for (int k = 18; k >= 1; --k) sum = 1.0 + sum * r / static_cast<double>(k);
    return sum * std::bit_cast<double>(static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52);
}

double exact_log(double x) noexcept {
    const uint64_t bits = std::bit_cast<uint64_t>(x);
    int64_t exponent = static_cast<int64_t>(bits >> 52) - 1023;
    double m = std::bit_cast<double>((bits & ~(uint64_t{0x7FF} << 52)) | uint64_t{1023} << 52);
    if (m > 0x1.6a09e667f3bcdp0) {  // keep m around 1, within a factor of sqrt(2)
        m *= 0.5;
        ++exponent;
    }
    const double t = (m - 1.0) / (m + 1.0);  // log m = 2 atanh t
    const double s = t * t;
    double sum = 0.0;
    for (int k = 29; k >= 3; k -= 2) sum = s * (1.0 / static_cast<double>(k) + sum);
    const auto e = static_cast<double>(exponent);
    return e * kLn2High + (2.0 * t + (2.0 * t * sum + e * kLn2Low));
}

double exact_sin(double x) noexcept {
    uint64_t quadrant = 0;
    const double r = reduce(x, quadrant);
    const double value = quadrant & 1 ? cos_series(r) : sin_series(r);
    return quadrant & 2 ? -value : value;
}

double exact_cos(double x) noexcept {
    uint64_t quadrant = 0;
    const double r = reduce(x, quadrant);
    const double value = quadrant & 1 ? sin_series(r) : cos_series(r);
    return (quadrant + 1) & 2 ? -value : value;
}

void rope_frequencies(double base, size_t n_rot, double* out) noexcept {
    const double log_base = exact_log(base);
    for (size_t i = 0; i < n_rot / 2; ++i)
        out[i] = exact_exp(-2.0 * static_cast<double>(i) / static_cast<double>(n_rot) * log_base);
}

void rope_row(double position, const double* frequencies, const float* factors, size_t n, double magnitude,
              float* cos_out, float* sin_out) noexcept {
    for (size_t i = 0; i < n; ++i) {
        const double angle = position * frequencies[i] / (factors != nullptr ? static_cast<double>(factors[i]) : 1.0);
        cos_out[i] = static_cast<float>(exact_cos(angle) * magnitude);
        sin_out[i] = static_cast<float>(exact_sin(angle) * magnitude);
    }
}

}  // namespace cadans::kernels
