// What steps without a prompt's rows really take, by their number of rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/units.h"
#include "flow/step_cost.h"

namespace cadans::sched {

/// The cost table's line is smooth, a machine's is not: kernels take rows in tiles, so that a fifth row may cost more
/// than the three before it together. Whoever asks what one row more costs must know that.
///
/// A factor for each number of rows, on the unscaled prediction, and one for all of them, which follows the machine.
/// A factor that was not seen for long comes back to 1, so that one that was measured in a bad moment is tried again.
/// Thread rule: one thread. Cost: a few operations.
class StepCurve {
  public:
    /// Predicted time of a step without a prompt's rows.
    uint64_t nanos(const StepCost& cost, const StepShape& shape) const noexcept {
        return cost.unscaled_ps(shape) / 1000 * all_ / kWhole * points_[point_of(shape.rows)].factor / kWhole;
    }

    /// One that took `measured`.
    void learn(const StepCost& cost, const StepShape& shape, Nanos measured) noexcept {
        const uint64_t predicted = nanos(cost, shape);
        if (predicted == 0 || measured <= 0) return;
        // A hiccup of the machine moves little.
        const auto took = std::clamp<uint64_t>(static_cast<uint64_t>(measured), predicted / 2, predicted * 2);
        Point& point = points_[point_of(shape.rows)];
        point.factor = towards(point.factor, point.factor * took / predicted, 2 + point.seen);
        point.seen = std::min(point.seen + 1, kSlowest);
        all_ = towards(all_, all_ * took / predicted, kFollow);
        if (++steps_ % kForget != 0) return;
        for (Point& each : points_) {
            each.factor = towards(each.factor, kWhole, kFollow);
            if (each.seen > 0) each.seen--;
        }
    }

  private:
    static constexpr uint64_t kWhole = 1024, kLeast = kWhole / 4, kMost = 4 * kWhole;
    static constexpr uint64_t kFollow = 16;
    static constexpr uint32_t kSlowest = 6;  ///< a point that was seen so often follows by an eighth
    static constexpr uint32_t kForget = 64;  ///< steps
    static constexpr uint32_t kPoints = 22;

    struct Point {
        uint64_t factor = kWhole;
        uint32_t seen = 0;
    };

    /// Each number of rows up to 16, four at a time up to 32, and all beyond.
    static uint32_t point_of(uint32_t rows) noexcept {
        if (rows <= 16) return rows;
        return rows <= 32 ? 17 + (rows - 17) / 4 : kPoints - 1;
    }

    static uint64_t towards(uint64_t from, uint64_t to, uint64_t part) noexcept {
        return std::clamp(from + to / part - from / part, kLeast, kMost);
    }

    uint64_t all_ = kWhole;
    uint32_t steps_ = 0;
    std::array<Point, kPoints> points_{};
};

}  // namespace cadans::sched
