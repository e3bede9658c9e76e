// When a prompt's answer will begin and end, as far as can be said beforehand.
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "base/units.h"

namespace cadans {

/// Of a sequence that has no word yet. It holds if nobody else comes and nobody leaves: who comes later may be served
/// before it, and who ends early makes room.
struct Forecast {
    SeqId seq{};
    uint32_t place = 0;      ///< waiting sequences that go before it; 0 for one that runs
    Nanos made = 0;          ///< when this was said
    Micros first_token = 0;  ///< from then to its first token
    Micros finish = 0;       ///< and to its last, if it writes all it may
};

}  // namespace cadans
