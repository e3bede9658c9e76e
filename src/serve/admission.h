// From a valid request to sequences that the engine can take: a place, token ids, limits.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "flow/request.h"
#include "metrics/request_record.h"
#include "runtime/inbox.h"
#include "serve/dialects/generation_request.h"

namespace cadans::serve {

/// One prompt, tokenized.
struct AdmittedPrompt {
    std::vector<TokenId> ids;
    std::string echo;               ///< its text, with `echo` only
    std::vector<uint32_t> offsets;  ///< characters before each token, with `echo` and `logprobs` only
};

/// All that is known before the engine hears of it. `sequences` are prompt by prompt, choice by choice.
struct Admitted {
    GenerationRequest request;
    runtime::Place place;
    std::vector<AdmittedPrompt> prompts;
    std::vector<SequenceRequest> sequences;  ///< their seq is not set yet
    bool reasoning_open = false;             ///< the prompt ends inside a thinking block
    text::AfterThinking after_thinking = text::AfterThinking::words;
    uint64_t seed = 0;
};

/// Takes a place, then tokenizes.
///
/// scope   who asks: (API key, user) as a number
/// record  gets its `tokenized` time
/// Errors  busy, unavailable; bad_input: empty prompts, more sequences than there are places; too_long with both
///         numbers; what the template says; a form that no grammar can be made of
/// Thread-safe. Cost: O(n log n) in the bytes of the prompt.
Result<Admitted> admit(GenerationRequest request, RequestId id, uint64_t scope, runtime::Inbox& inbox,
                       metrics::RequestRecord& record);

/// The tokens that its prompts have. Errors as admit(), of the text alone. Thread-safe.
Result<size_t> count_prompt(const GenerationRequest& request);

}  // namespace cadans::serve
