// One request with a stop-watch: when it was sent, when each piece of text came, how it ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "load/dialect.h"

namespace cadans::load {

struct Answer {
    Nanos sent = 0;
    std::optional<Nanos> first, last;  ///< pieces that carry text
    std::vector<Nanos> gaps;           ///< between them
    Nanos end = 0;
    uint32_t pieces = 0;
    uint64_t first_bytes = 0, bytes = 0;            ///< of text, in the first piece and in all
    uint32_t prompt_tokens = 0, output_tokens = 0;  ///< as the server counts; the pieces where it does not
    std::optional<double> prompt_ms;                ///< reading the prompt, as the server says
    int status = 0;
    std::string error;  ///< empty: a whole answer came

    bool refused() const noexcept { return status == 429 || status == 503; }
};

/// Sends and reads to the end; blocks. A piece's time is taken when its bytes are here. Thread-safe.
Answer ask(const Peer& peer, const std::string& prompt, uint32_t output);

}  // namespace cadans::load
