// How the next token is chosen from its logits.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace cadans {

inline constexpr uint32_t kMaxTopLogprobs = 20;

struct LogitBias {
    TokenId token;
    float bias;  ///< added to the logit; -inf forbids the token
};

/// Order of use: bias and penalties, temperature, top-k, top-p, min-p, then one draw with the noise of
/// (seed, choice, absolute position). Temperature 0 (or so near it that it
/// makes no difference) is greedy: the largest logit, ties to the lowest id.
struct SamplingParams {
    float temperature = 1.0F;
    uint32_t top_k = 0;  ///< 0: all
    float top_p = 1.0F;
    float min_p = 0.0F;
    float repeat_penalty = 1.0F;  ///< divides positive and multiplies negative logits of recent tokens
    uint32_t repeat_last_n = 64;  ///< how far back the three penalties look
    float presence_penalty = 0.0F;
    float frequency_penalty = 0.0F;
    std::vector<LogitBias> logit_bias = {};  ///< ascending by token; holds the end tokens at -inf for ignore_eos
    uint64_t seed = 0;
    uint32_t choice = 0;       ///< which of the request's n answers this is
    bool logprobs = false;     ///< score the chosen token
    uint8_t top_logprobs = 0;  ///< and this many best ones, at most kMaxTopLogprobs
};

struct TokenLogprob {
    TokenId token;
    float logprob;
};

/// One token with its log-probability from raw logits, and the best alternatives, best first.
struct TokenScore {
    TokenId token{};
    float logprob = 0.0F;
    uint8_t top_count = 0;
    TokenLogprob top[kMaxTopLogprobs];
};

}  // namespace cadans
