// From one row of logits to the next token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "flow/sampling.h"
#include "kernels/table.h"

namespace cadans::engine {

/// Chooses and scores tokens. Holds scratch for one thread; no allocation after construction.
class Sampler {
  public:
    Sampler(const kernels::KernelTable& table, uint32_t vocab, uint32_t max_context_tokens);

    /// The token that follows `known`, whose position will be known.size(): a pure function of its arguments.
    ///
    /// logits  [vocab] f32
    /// allowed bit i: token i may be drawn; empty: all may. At least one of them has no bias of -inf
    /// out     gets the token; its log-probabilities, from the raw logits, only where `params` asks for them
    /// Returns false where a logit is not a finite number: there is no honest choice then.
    /// Cost    greedy: two passes over the logits; sampled: two more; top-k and top-p one more each; a mask one more
    /// Source  Gumbel-max (Maddison et al. 2014); nucleus: Holtzman et al. 2020; min-p: Nguyen et al. 2024
    bool sample(const float* logits, const SamplingParams& params, std::span<const TokenId> known, TokenScore& out,
                std::span<const uint64_t> allowed = {});

    /// The log-probability of `token` and of the `top` best. False where a logit is not finite.
    bool score(const float* logits, TokenId token, uint8_t top, TokenScore& out);

  private:
    struct Candidate {
        float logit;
        uint32_t id;
    };
    bool finite(const float* logits) const;
    void write_scores(const float* logits, TokenId token, uint8_t top, TokenScore& out);
    void forbid(float* logits, std::span<const uint64_t> allowed) const;
    void adjust(float* logits, const SamplingParams& params, std::span<const TokenId> known);
    float lowest_kept(const float* logits, const SamplingParams& params);
    float nucleus_floor(const float* logits, float top_p, float temperature, float largest, float floor);
    size_t best(const float* logits, size_t n, float at_least);

    const kernels::KernelTable& k_;
    uint32_t vocab_;
    std::vector<Candidate> candidates_;
    std::vector<uint32_t> recent_;
    std::vector<float> adjusted_, scaled_;
};

}  // namespace cadans::engine
