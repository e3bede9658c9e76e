#include "kernels/reference/reference.h"

#include <cmath>
#include <numbers>

namespace cadans::kernels::reference {

std::vector<double> matmul(WeightType type, const std::vector<std::byte>& file, size_t rows, size_t cols,
                           const std::vector<double>& x) {
    std::vector<double> y(rows);
    std::vector<float> row(cols);
    for (size_t r = 0; r < rows; ++r) {
        dequantize_row(type, file.data() + r * row_bytes(type, cols), cols, row.data());
        for (size_t k = 0; k < cols; ++k) y[r] += static_cast<double>(row[k]) * x[k];
    }
    return y;
}

std::vector<double> rms_norm(const std::vector<float>& x, const std::vector<float>& weight, double eps) {
    double squares = 0.0;
    for (const float v : x) squares += static_cast<double>(v) * v;
    const double root = std::sqrt(squares / static_cast<double>(x.size()) + eps);
    std::vector<double> y;
    for (size_t i = 0; i < x.size(); ++i)
        y.push_back(static_cast<double>(x[i]) / root * (weight.empty() ? 1.0 : static_cast<double>(weight[i])));
    return y;
}

std::vector<double> attention(const float* q, const std::vector<std::vector<float>>& keys,
                              const std::vector<std::vector<float>>& values, size_t first, size_t end, double scale,
                              double softcap) {
    const size_t head_dim = keys[first].size();
    std::vector<double> weights;
    double total = 0.0;
    double largest = -INFINITY;
    for (size_t t = first; t < end; ++t) {
        double score = 0.0;
        for (size_t d = 0; d < head_dim; ++d) score += static_cast<double>(q[d]) * static_cast<double>(keys[t][d]);
        score *= scale;
        if (softcap != 0.0) score = softcap * std::tanh(score / softcap);
        weights.push_back(score);
        largest = std::fmax(largest, score);
    }
    for (double& w : weights) total += w = std::exp(w - largest);
    std::vector<double> out(head_dim);
    for (size_t t = first; t < end; ++t)
        for (size_t d = 0; d < head_dim; ++d) out[d] += weights[t - first] / total * static_cast<double>(values[t][d]);
    return out;
}

void rotate(float& a, float& b, double angle) {
    const double x = a;
    const double y = b;
    a = static_cast<float>(x * std::cos(angle) - y * std::sin(angle));
    b = static_cast<float>(x * std::sin(angle) + y * std::cos(angle));
}

double silu(double x) { return x / (1.0 + std::exp(-x)); }

double gelu(double x) {
    return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

}  // namespace cadans::kernels::reference
