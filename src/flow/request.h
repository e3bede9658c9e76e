// One stream of tokens as the door hands it in: ids and numbers, no text.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "flow/constraint.h"
#include "flow/drafter.h"
#include "flow/embedding.h"
#include "flow/sampling.h"

namespace cadans {

enum class Priority : uint8_t { interactive, normal, background };

inline constexpr uint32_t kPriorities = 3;

constexpr const char* name(Priority priority) noexcept {
    constexpr const char* kNames[kPriorities] = {"interactive", "normal", "background"};
    return kNames[static_cast<uint8_t>(priority)];
}

/// Checked at the door: every id is in the vocabulary, the prompt is not empty, and
/// prompt.size() + max_new_tokens fits the context.
struct SequenceRequest {
    SeqId seq{};
    RequestId request{};
    ModelId model{};
    std::vector<TokenId> prompt;
    uint32_t max_new_tokens = 0;      ///< 0: only compute (and score) the prompt
    std::vector<TokenId> end_tokens;  ///< ascending; drawing one ends the answer with `stop`
    SamplingParams sampling;
    std::shared_ptr<Constraint> constraint;  ///< null: anything may be said; shared by all answers that keep to it
    std::shared_ptr<Embedding> embedding;    ///< not null: only the prompt's vector is asked for, max_new_tokens is 0
    bool score_prompt = false;               ///< report every prompt token's log-probability (echo)
    bool cache_prompt = true;                ///< take what is cached, and leave one's own pages for the next
    Speculation speculation = Speculation::as_served;
    bool recalls = false;  ///< guessed from this scope's last answers too; its own is kept for the next
    Priority priority = Priority::normal;
    uint64_t scope = 0;  ///< who asks: cached prefixes and fair share go by it
};

}  // namespace cadans
