// Elementary functions for tables, from IEEE double operations alone: the same bits on every machine and compiler.
#pragma once

#include <cstddef>

namespace cadans::kernels {

/// Accurate to about 1e-15 relative (sine and cosine: absolute, for |x| < 1e6). Thread-safe. Not for hot loops.
double exact_exp(double x) noexcept;
double exact_log(double x) noexcept;  ///< x > 0
double exact_sin(double x) noexcept;
double exact_cos(double x) noexcept;

/// base^(-2i/n_rot) for i in 0 .. n_rot/2 - 1, the rotary frequencies.
///
/// out     [n_rot/2]
/// Source  RoFormer, Su et al. 2021, sec. 3.2
void rope_frequencies(double base, size_t n_rot, double* out) noexcept;

/// cos and sin of position * frequencies[i] / factors[i] (a null `factors` means ones), times `magnitude`, rounded
/// once.
///
/// frequencies, factors  [n]; cos_out, sin_out  [n] f32
void rope_row(double position, const double* frequencies, const float* factors, size_t n, double magnitude,
              float* cos_out, float* sin_out) noexcept;

}  // namespace cadans::kernels
