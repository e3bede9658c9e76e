#include "engine/cost_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/check.h"

namespace cadans::engine {
namespace {

constexpr size_t kTerms = 6;  // weights, row, step, prompt key, decode key, logits
using Coefficients = std::array<double, kTerms>;
using Matrix = std::array<Coefficients, kTerms>;

constexpr double kPicosPerNano = 1000;
constexpr int kRounds = 8;
constexpr double kSmallError = 0.01;  ///< as good as none

/// The normal equations of relative errors: each row of the system is divided by its measured time.
struct Normal {
    Matrix a{};
    Coefficients b{};

    void add(const Coefficients& row, double time, double weight) {
        for (size_t i = 0; i < kTerms; i++) {
            for (size_t j = 0; j < kTerms; j++) a[i][j] += weight * row[i] * row[j] / (time * time);
            b[i] += weight * row[i] / time;
        }
    }
};

/// Gaussian elimination over the terms in `set`; the others are zero. None where the system is singular.
std::optional<Coefficients> solve(const Normal& normal, unsigned set) {
    std::array<size_t, kTerms> term{};
    size_t n = 0;
    for (size_t i = 0; i < kTerms; i++)
        if ((set >> i & 1) != 0) term[n++] = i;
    std::array<std::array<double, kTerms + 1>, kTerms> m{};
    std::array<double, kTerms> unit{};  // columns differ by many orders of magnitude
    for (size_t i = 0; i < n; i++) {
        unit[i] = std::sqrt(normal.a[term[i]][term[i]]);
        if (unit[i] == 0) return std::nullopt;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) m[i][j] = normal.a[term[i]][term[j]] / (unit[i] * unit[j]);
        m[i][n] = normal.b[term[i]] / unit[i];
    }
    for (size_t k = 0; k < n; k++) {
        size_t pivot = k;
        for (size_t i = k + 1; i < n; i++)
            if (std::abs(m[i][k]) > std::abs(m[pivot][k])) pivot = i;
        if (std::abs(m[pivot][k]) < 1e-9) return std::nullopt;
        std::swap(m[k], m[pivot]);
        for (size_t i = k + 1; i < n; i++) {
            const double f = m[i][k] / m[k][k];
            for (size_t j = k; j <= n; j++) m[i][j] -= f * m[k][j];
        }
    }
    Coefficients x{};
    for (size_t k = n; k-- > 0;) {
        double sum = m[k][n];
        for (size_t j = k + 1; j < n; j++) sum -= m[k][j] * x[term[j]] * unit[j];
        x[term[k]] = sum / m[k][k] / unit[k];
    }
    return x;
}

uint64_t bounded(double picos, uint64_t most) {
    return static_cast<uint64_t>(std::llround(std::clamp(picos, 0.0, static_cast<double>(most))));
}

StepCost cost_of(const Coefficients& x, StepCost cost) {
    cost.weights_ps = bounded(x[0], StepCost::kMostPerRow);
    cost.row_ps = bounded(x[1], StepCost::kMostPerRow);
    cost.step_ps = bounded(x[2], StepCost::kMostPerRow);
    cost.prompt_key_ps = bounded(x[3], StepCost::kMostPerKey);
    cost.decode_key_ps = bounded(x[4], StepCost::kMostPerKey);
    cost.logits_ps = bounded(x[5], StepCost::kMostPerRow);
    return cost;
}

double relative_error(const StepSample& sample, const StepCost& cost) {
    const double time = static_cast<double>(sample.time) * kPicosPerNano;
    return std::abs(static_cast<double>(cost.unscaled_ps(sample.shape)) - time) / time;
}

using Weights = std::vector<double>;  ///< of samples

double squared_error(std::span<const StepSample> samples, const Weights& weights, const StepCost& cost) {
    double sum = 0;
    for (size_t i = 0; i < samples.size(); i++) sum += weights[i] * std::pow(relative_error(samples[i], cost), 2);
    return sum;
}

/// Steps of up to `turn` rows wait for weights, larger ones compute.
Normal equations(std::span<const StepSample> samples, const Weights& weights, uint32_t turn) {
    Normal normal;
    for (size_t i = 0; i < samples.size(); i++) {
        const StepShape& shape = samples[i].shape;
        const bool waits = shape.rows <= turn;
        normal.add({waits ? 1.0 : 0.0, waits ? 0.0 : shape.rows, 1.0, static_cast<double>(shape.prompt_context),
                    static_cast<double>(shape.decode_context), static_cast<double>(shape.logits_rows)},
                   static_cast<double>(samples[i].time) * kPicosPerNano, weights[i]);
    }
    return normal;
}

/// The best of all turns and all sets of terms that are not zero.
StepCost best_cost(std::span<const StepSample> samples, const Weights& weights, const std::vector<uint32_t>& turns,
                   const StepCost& window) {
    StepCost best;
    double least = -1;
    for (const uint32_t turn : turns) {
        const Normal normal = equations(samples, weights, turn);
        for (unsigned set = 1; set < 1u << kTerms; set++) {
            const std::optional<Coefficients> x = solve(normal, set);
            if (!x || std::ranges::any_of(*x, [](double c) { return c < 0; })) continue;
            const StepCost cost = cost_of(*x, window);
            const double error = squared_error(samples, weights, cost);
            if (least >= 0 && error >= least) continue;
            least = error;
            best = cost;
        }
    }
    check(least >= 0, "a constant can always be fitted");
    return best;
}

double quantile(std::vector<double>& sorted, double q) {
    const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(sorted.size())));
    return sorted[rank == 0 ? 0 : rank - 1];
}

}  // namespace

CostFit fit_step_cost(std::span<const StepSample> samples, const StepCost& window) {
    check(!samples.empty(), "a fit has samples");
    std::vector<uint32_t> turns = {0};
    for (const StepSample& sample : samples) {
        check(sample.shape.rows > 0 && sample.time > 0, "a sample has rows and took time");
        turns.push_back(sample.shape.rows);
    }
    std::ranges::sort(turns);
    turns.erase(std::unique(turns.begin(), turns.end()), turns.end());

    // Weights of 1 / error turn least squares into least absolute errors: a step that was held up counts little.
    CostFit best;
    Weights weights(samples.size(), 1.0);
    for (int round = 0; round < kRounds; round++) {
        best.cost = best_cost(samples, weights, turns, window);
        for (size_t i = 0; i < samples.size(); i++)
            weights[i] = 1.0 / std::max(kSmallError, relative_error(samples[i], best.cost));
    }
    std::vector<double> errors;
    for (const StepSample& sample : samples) errors.push_back(relative_error(sample, best.cost));
    std::ranges::sort(errors);
    best.median_error = quantile(errors, 0.5);
    best.p90_error = quantile(errors, 0.9);
    return best;
}

}  // namespace cadans::engine
