// A numbered stream of random draws: the n-th one of a seed is always the same.
#pragma once

#include <cstdint>

namespace cadans::sim {

/// Thread rule: a value.
class Draws {
  public:
    explicit Draws(uint64_t seed) : seed_(seed) {}

    double uniform();                ///< of (0, 1]
    uint64_t below(uint64_t count);  ///< of 0 .. count - 1; count at least 1
    double normal();                 ///< mean 0, deviation 1
    double exponential(double mean);
    double gamma(double mean, double cv);  ///< cv: deviation over mean, more than 0
    /// A whole number of at least 1, lognormal about `median`; spread 0 is always the median.
    uint32_t length(double median, double spread, uint32_t most);

  private:
    uint64_t seed_;
    uint64_t count_ = 0;
};

}  // namespace cadans::sim
