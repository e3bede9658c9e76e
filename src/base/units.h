// Quantities with their units: nanoseconds, and sizes in bytes as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cadans {

using Nanos = int64_t;   ///< steady-clock nanoseconds, a point or a span
using Micros = int64_t;  ///< whole microseconds: predicted costs

inline constexpr Nanos kNanosPerMicro = 1'000;
inline constexpr Nanos kNanosPerMilli = 1'000'000;
inline constexpr Nanos kNanosPerSecond = 1'000'000'000;

/// "512", "64K", "4G", "1.5G": K, M, G, T as powers of 1,024. Errors: anything else, or over 2^60.
Result<uint64_t> parse_size(std::string_view text);

/// "1.5 GiB": three significant figures, for people.
std::string format_size(uint64_t bytes);

/// "6.9 s", "12 ms": for people.
std::string format_duration(Nanos span);

}  // namespace cadans
