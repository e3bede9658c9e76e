// The way of pages into one worker: how long after a step those that it filled are here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace cadans::sim {

/// Of the model whose pages move.
struct KvShape {
    static constexpr uint64_t kMostTokenBytes = uint64_t{1} << 28;
    static constexpr uint32_t kMostLayers = 4096;

    uint64_t token_bytes = 32'768;  ///< keys and values of one token, all layers
    uint32_t layers = 16;
};

struct LinkSpeed {
    double bytes_per_second = 125e6;  ///< more than 0
    Nanos latency = 0;                ///< from the last byte sent to the last byte here
};

/// "100M", "1G", "2.5G", "10Gbit/s": bits a second, K, M and G as powers of 1,000, as network speeds are given. In
/// bytes a second. Errors: bad_input for anything else, and below 1 Kbit/s or above 1,000,000 Gbit/s.
Result<double> parse_link_speed(std::string_view text);

/// "100 Mbit/s": for people.
std::string format_link_speed(double bytes_per_second);

/// Pages are pulled by who goes on with them, layer by layer while the step that fills them still runs, those of one
/// step after those of another. With T for the time of the step, B for the bytes of its pages, r for the rate and L
/// layers, each of T / L and B / L, nothing else in the way, the last byte is sent
///
///     T / L + (L - 1) / L max(T, B / r) + B / (r L)   after the step's begin,
///
/// so max(0, B / r - T) + min(T, B / r) / L after its end: that much of the transfer is *exposed*, and the rest is
/// hidden behind the step. Source: a flow shop of two machines and equal jobs, Johnson 1954; pages that move while the
/// prompt is read, Patel et al. 2024 (Splitwise); pulled by the decode side, Zhong et al. 2024 (DistServe)
/// section 4.3.
///
/// Thread rule: a value.
class Link {
  public:
    Link(const LinkSpeed& speed, const KvShape& kv) : speed_(speed), kv_(kv) {}

    /// Pages of `tokens` tokens that a step filled in [begin, end); not before `since`. When the last of them is here:
    /// never before `end`. Times far beyond any workload are one time.
    Nanos pull(uint32_t tokens, Nanos begin, Nanos end, Nanos since) noexcept {
        const double bytes = static_cast<double>(tokens) * static_cast<double>(kv_.token_bytes);
        const auto whole = static_cast<Nanos>(std::min(std::ceil(bytes * 1e9 / speed_.bytes_per_second), kFar));
        const Nanos first_layer = begin + (end - begin) / kv_.layers;
        const Nanos sent = std::max(std::max({free_, since, first_layer}) + whole, end + whole / kv_.layers);
        free_ = std::min(sent, static_cast<Nanos>(kFar));
        busy_ += std::min(whole, static_cast<Nanos>(kFar) - busy_);
        return free_ + speed_.latency;
    }

    Nanos busy() const noexcept { return busy_; }  ///< time in which bytes moved

  private:
    static constexpr double kFar = 2e18;  ///< nanoseconds, some sixty years

    LinkSpeed speed_;
    KvShape kv_;
    Nanos free_ = 0;
    Nanos busy_ = 0;
};

}  // namespace cadans::sim
