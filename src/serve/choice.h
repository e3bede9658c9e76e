// One of the answers to a request: what the engine tells of its sequence becomes pieces to be written.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flow/embedding.h"
#include "flow/event.h"
#include "serve/admission.h"
#include "serve/dialects/answer_writer.h"
#include "serve/forms/call_reader.h"
#include "serve/token_stream.h"

namespace cadans::serve {

/// Thread rule: one thread. Borrows the request and the prompt.
class Choice {
  public:
    Choice(const GenerationRequest& request, const AdmittedPrompt& prompt, uint32_t index, TokenStreamOptions options,
           std::shared_ptr<Embedding> embedding);

    const AdmittedPrompt& prompt() const noexcept { return *prompt_; }
    uint32_t prompt_tokens() const noexcept { return static_cast<uint32_t>(prompt_->ids.size()); }

    /// How far its prompt has been read: tokens that are there, those of them that were there before, and where what
    /// was there before ended.
    struct Reading {
        uint32_t computed = 0, cached = 0;
        ReuseEnd reuse_end = ReuseEnd::whole;
        uint32_t reuse_position = 0;
    };
    const Reading& reading() const noexcept { return reading_; }

    SeqId seq{};  ///< its sequence in the engine, once it has one

    void read(const Event& share);          ///< a step has read some of its prompt
    void score_prompt(const Event& event);  ///< of its prompt's next token
    bool take(const Event& token);  ///< returns whether a stop string is complete: it has ended, and nothing follows
    bool end(FinishReason reason);  ///< the engine has ended it; returns whether as an answer may end

    const std::optional<FinishReason>& reason() const noexcept { return reason_; }
    uint32_t tokens() const noexcept { return tokens_; }
    std::optional<uint32_t> thinking_tokens() const noexcept { return stream_.reasoning_tokens(); }

    const ChoiceText& pending() const noexcept { return pending_; }
    ChoiceText take_whole();          ///< all of it, for an answer that does not stream
    bool has_piece() const noexcept;  ///< pending() may be written as it is
    void shown();                     ///< pending() was written
    bool in_flush() const noexcept { return in_flush_; }
    uint32_t flushed();  ///< what was written went out: how many tokens that were

    bool finish_written = false;

  private:
    void echo();
    void take_text(TextDelta delta, bool last = false);
    void take_calls(ReadText read);

    const GenerationRequest* request_;
    const AdmittedPrompt* prompt_;
    TokenStream stream_;
    std::optional<CallReader> calls_;  // where tools may be called
    std::vector<std::string> call_ids_;
    std::shared_ptr<Embedding> embedding_;
    ChoiceText pending_;
    Reading reading_;
    uint32_t echoed_characters_ = 0;
    uint32_t tokens_ = 0;
    uint32_t unflushed_tokens_ = 0;
    bool in_flush_ = false;
    std::optional<FinishReason> reason_;
};

}  // namespace cadans::serve
