// The text form that Prometheus reads: families with one HELP and one TYPE, samples with escaped labels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "metrics/histogram.h"

namespace cadans::metrics {

using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

/// Writes a page of version 0.0.4. A family is opened once; its samples follow directly. Names and label
/// names are ours and need no escaping; label values may be anything. Thread rule: one thread.
class Exposition {
  public:
    enum class Type { counter, gauge, histogram };

    /// The samples that follow belong to this family. A name opened before is our bug.
    void family(std::string_view name, Type type, std::string_view help);

    void sample(const Labels& labels, uint64_t value);
    void sample_seconds(const Labels& labels, Nanos value);

    /// Buckets, sum and count, in seconds.
    void histogram(const Labels& labels, const Histogram& histogram);

    const std::string& text() const noexcept { return text_; }
    const std::vector<std::string>& families() const noexcept { return families_; }

  private:
    void line(std::string_view suffix, const Labels& labels, std::string_view le, std::string_view value);

    std::string text_;
    std::vector<std::string> families_;
};

/// A span in seconds as the shortest exact decimal: 1500000000 is "1.5".
std::string seconds_text(Nanos span);

}  // namespace cadans::metrics
