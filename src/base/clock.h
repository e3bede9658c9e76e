// The steady clock, read at the edges only; floors below `runtime` get time as an argument.
#pragma once

#include "base/units.h"

namespace cadans {

/// Now, on the steady clock. Thread-safe.
Nanos steady_now() noexcept;

/// Seconds since 1970, for `created` fields only: never for measuring.
int64_t unix_seconds() noexcept;

/// Milliseconds since 1970, to say when something was: never for measuring.
int64_t unix_millis() noexcept;

}  // namespace cadans
