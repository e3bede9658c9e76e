// Scores of tokens in OpenAI's two forms.
#pragma once

#include <span>

#include "serve/dialects/answer_writer.h"
#include "serve/dialects/json_writer.h"

namespace cadans::serve {

/// `{"content": [{"token", "logprob", "bytes", "top_logprobs"}], "refusal": null}` of chat.
void write_chat_logprobs(JsonWriter& json, std::span<const ScoredToken> tokens, const text::Vocabulary& vocabulary);

/// `{"tokens", "token_logprobs", "top_logprobs", "text_offset"}` of completions. The chosen token is always among its
/// top_logprobs; of two tokens with one name the likelier stands.
void write_completion_logprobs(JsonWriter& json, std::span<const ScoredToken> tokens,
                               const text::Vocabulary& vocabulary);

}  // namespace cadans::serve
