// Slow references in double, written from the definitions and by other means than the kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/types.h"

namespace cadans::kernels::reference {

/// y[r] = sum over k of W[r][k] * x[k], W in file layout.
std::vector<double> matmul(WeightType type, const std::vector<std::byte>& file, size_t rows, size_t cols,
                           const std::vector<double>& x);

/// x / sqrt(mean(x^2) + eps) * weight. Source: Zhang & Sennrich 2019.
std::vector<double> rms_norm(const std::vector<float>& x, const std::vector<float>& weight, double eps);

/// Softmax attention of one query over keys and values [n][head_dim]. Source: Vaswani et al. 2017, eq. 1.
std::vector<double> attention(const float* q, const std::vector<std::vector<float>>& keys,
                              const std::vector<std::vector<float>>& values, size_t first, size_t end, double scale,
                              double softcap);

/// Rotates the plane of elements a and b by `angle`. Source: Su et al. 2021.
void rotate(float& a, float& b, double angle);

double silu(double x);
double gelu(double x);

}  // namespace cadans::kernels::reference
