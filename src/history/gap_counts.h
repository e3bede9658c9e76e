// How often gaps were how long: a histogram so small that every request can keep one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"

namespace cadans::history {

/// Sixteen classes for each doubling: a percentile is at most 4.5 % above the gap that it stands for. The longest gap
/// is kept exactly. Only classes that hold something take room. Thread rule: a value.
class GapCounts {
  public:
    void add(Nanos gap);
    void add(std::span<const Nanos> gaps) {
        for (const Nanos gap : gaps) add(gap);
    }
    void add(const GapCounts& other);

    uint64_t count() const noexcept { return count_; }
    Nanos max() const noexcept { return max_; }

    /// By nearest rank; the upper end of the class, at most max(). Nothing where nothing was counted.
    std::optional<Nanos> percentile(uint32_t percent) const;

    /// "max class:count class:count …", and back. What cannot be read is empty.
    std::string text() const;
    static GapCounts of(std::string_view text);

  private:
    void count(uint16_t number, uint64_t more);

    std::vector<std::pair<uint16_t, uint64_t>> counts_;  // by class, in order
    uint64_t count_ = 0;
    Nanos max_ = 0;
};

}  // namespace cadans::history
