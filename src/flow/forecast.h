// When a prompt's answer will begin and end, as far as can be said beforehand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

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

    Nanos first_token_at() const noexcept { return made + first_token * kNanosPerMicro; }
};

/// Of a prompt of `prompt_tokens` tokens, none of them cached, of somebody who would come now.
struct NewcomerForecast {
    ModelId model{};
    uint32_t prompt_tokens = 0;
    uint32_t place = 0;
    Micros first_token = 0;  ///< after it came; 0 where nothing is predicted
    Micros word = 0;         ///< between two of its words
};

/// All that is foretold at one time.
struct Outlook {
    std::vector<Forecast> line = {};               ///< those without a word, in the order in which they are served
    std::vector<NewcomerForecast> newcomers = {};  ///< ascending by model and length; empty where nothing is predicted
    Nanos made = 0;
    std::optional<Micros> first_end = {};  ///< from then to the first end of a sequence inside, if it writes all it may

    /// For a prompt of this length that comes at `now` and may write `words` words: between the two nearest of
    /// `newcomers`. Nothing where nothing is predicted.
    std::optional<Forecast> newcomer(ModelId model, uint32_t prompt_tokens, uint32_t words, Nanos now) const {
        const NewcomerForecast *below = nullptr, *above = nullptr;
        for (const NewcomerForecast& one : newcomers) {
            if (one.model != model) continue;
            if (one.prompt_tokens <= prompt_tokens) below = &one;
            if (one.prompt_tokens >= prompt_tokens && above == nullptr) above = &one;
        }
        if (below == nullptr) below = above;
        if (above == nullptr) above = below;
        if (above == nullptr || above->first_token == 0) return std::nullopt;
        const Micros tokens = above->prompt_tokens - below->prompt_tokens;
        const Micros over = tokens == 0 ? 0 : prompt_tokens - std::min(prompt_tokens, below->prompt_tokens);
        Forecast out{.place = above->place, .made = now};
        out.first_token = below->first_token;
        if (tokens > 0) out.first_token += (above->first_token - below->first_token) / tokens * over;
        out.finish = out.first_token + (words == 0 ? 0 : words - 1) * above->word;
        return out;
    }
};

}  // namespace cadans
