#include "history/gap_counts.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace cadans::history {
namespace {

constexpr uint32_t kPartBits = 4;  ///< 2^4 classes a doubling

/// Small numbers are classes of their own; beyond, the class is the exponent and the next four bits.
uint16_t class_of(Nanos gap) {
    const auto n = static_cast<uint64_t>(std::max<Nanos>(gap, 0));
    if (n < (uint64_t{1} << kPartBits)) return static_cast<uint16_t>(n);
    const auto exponent = static_cast<uint32_t>(std::bit_width(n)) - 1;
    const uint64_t part = (n >> (exponent - kPartBits)) - (uint64_t{1} << kPartBits);
    return static_cast<uint16_t>(((exponent - kPartBits + 1) << kPartBits) + part);
}

/// The largest gap of a class.
Nanos end_of(uint16_t number) {
    if (number < (1U << kPartBits)) return number;
    const uint32_t shift = (number >> kPartBits) - 1U;
    const uint64_t part = (number & ((1U << kPartBits) - 1)) + (uint64_t{1} << kPartBits);
    return static_cast<Nanos>(((part + 1) << shift) - 1);
}

constexpr uint16_t kClasses = (63 - kPartBits + 1) << kPartBits;  ///< of 63-bit numbers

}  // namespace

void GapCounts::count(uint16_t number, uint64_t more) {
    count_ += more;
    auto at = counts_.end();
    if (!counts_.empty() && counts_.back().first >= number)  // most come in order
        at = std::ranges::lower_bound(counts_, number, {}, &std::pair<uint16_t, uint64_t>::first);
    if (at == counts_.end() || at->first != number) at = counts_.insert(at, {number, 0});
    at->second += more;
}

void GapCounts::add(Nanos gap) {
    count(class_of(gap), 1);
    max_ = std::max(max_, gap);
}

void GapCounts::add(const GapCounts& other) {
    for (const auto& [number, times] : other.counts_) count(number, times);
    max_ = std::max(max_, other.max_);
}

std::optional<Nanos> GapCounts::percentile(uint32_t percent) const {
    if (count_ == 0) return std::nullopt;
    const uint64_t rank = std::max<uint64_t>(1, (count_ * percent + 99) / 100);
    uint64_t seen = 0;
    for (const auto& [number, times] : counts_) {
        seen += times;
        if (seen >= rank) return std::min(end_of(number), max_);
    }
    return max_;
}

std::string GapCounts::text() const {
    if (count_ == 0) return {};
    std::string out = std::to_string(max_);
    for (const auto& [number, times] : counts_) out += ' ' + std::to_string(number) + ':' + std::to_string(times);
    return out;
}

GapCounts GapCounts::of(std::string_view text) {
    GapCounts out;
    const char* at = text.data();
    const char* end = at + text.size();
    const auto take = [&](uint64_t& number) {
        const auto [next, trouble] = std::from_chars(at, end, number);
        at = next;
        return trouble == std::errc();
    };
    uint64_t max = 0;
    if (text.empty() || !take(max) || max > static_cast<uint64_t>(INT64_MAX)) return {};
    out.max_ = static_cast<Nanos>(max);
    while (at < end) {
        uint64_t number = 0, times = 0;
        if (*at++ != ' ' || !take(number) || number >= kClasses || at == end || *at++ != ':' || !take(times)) return {};
        out.count(static_cast<uint16_t>(number), times);
    }
    return out;
}

}  // namespace cadans::history
