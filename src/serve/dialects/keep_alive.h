// How long an idle model stays in memory, as Ollama's clients say it.
#pragma once

#include <limits>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace cadans::serve {

/// Never, as a time to keep a model.
inline constexpr Nanos kForEver = std::numeric_limits<Nanos>::max();

/// "5m", "1h30m", "300ms", "0", or a number of seconds, "90"; negative means for ever. Errors: bad_input with what was
/// expected. Source: Go's time.ParseDuration, which Ollama reads the field with.
Result<Nanos> parse_keep_alive(std::string_view text);

/// A number of seconds as JSON carries it; negative means for ever.
Nanos keep_alive_of(double seconds) noexcept;

}  // namespace cadans::serve
