#include "base/clock.h"

#include <ctime>

namespace cadans {

Nanos steady_now() noexcept {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * kNanosPerSecond + t.tv_nsec;
}

int64_t unix_seconds() noexcept { return std::time(nullptr); }

int64_t unix_millis() noexcept {
    timespec t{};
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000 + t.tv_nsec / kNanosPerMilli;
}

}  // namespace cadans
