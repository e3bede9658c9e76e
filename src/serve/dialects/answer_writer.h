// How an answer looks on the wire: one writer a dialect, streamed or whole.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flow/event.h"
#include "flow/sampling.h"
#include "metrics/figures.h"
#include "serve/dialects/error_reply.h"
#include "serve/dialects/figures_json.h"
#include "serve/dialects/generation_request.h"

namespace cadans::serve {

/// A token with its score and where its text begins, in characters of the choice's text.
struct ScoredToken {
    TokenScore score;
    uint32_t offset = 0;
    bool scored = true;  ///< false: the first token of a text has no score
};

/// A stretch of a call of a tool: its id and name once, its arguments in pieces that join to a JSON object.
struct CallText {
    uint32_t index = 0;  ///< of the call in its answer
    std::string id, name, arguments;
    bool first = false, last = false;
};

/// The pieces of each call joined. An answer that was cut may end in one whose arguments are not whole: it is not
/// `last`.
std::vector<CallText> whole_calls(std::span<const CallText> pieces);

/// What one choice has to show since the last frame; in an answer that does not stream, all of it.
struct ChoiceText {
    uint32_t index = 0;
    std::string content, reasoning;
    std::vector<CallText> calls;
    bool called = false;                  ///< in all: it calls tools, and no call was cut
    std::string stopped_by;               ///< the stop string that ended it
    std::vector<TokenId> ids;             ///< generated ones
    std::vector<ScoredToken> scored;      ///< of the prompt too, with echo
    std::span<const float> embedding;     ///< of its prompt, where that is asked for: [width], not normalised
    std::span<const TokenId> prompt_ids;  ///< of its prompt; given with the first frame only
    bool first = true;                    ///< nothing of this choice was shown before

    bool has_text() const noexcept { return !content.empty() || !reasoning.empty() || !calls.empty(); }
};

/// Where a prompt stands before its first word.
struct Progress {
    const char* phase = "queue";
    uint32_t computed = 0, total = 0, cached = 0;
    std::optional<double> seconds_left;
    std::optional<uint32_t> queue_place;  ///< 0: next
    std::optional<double> percent;        ///< of the model that is being loaded
};

/// What can be said when all is over.
struct Closing {
    metrics::Figures figures;
    metrics::Timings timings;
    metrics::OllamaDurations durations;
    uint32_t completion_tokens = 0;
    std::optional<uint32_t> reasoning_tokens;  ///< where thinking was parted
    std::string cadans;                        ///< the object, written
};

/// What does not change while an answer goes out.
struct AnswerHead {
    AnswerForm form = AnswerForm::chat;
    std::string id;
    std::string model;
    int64_t created = 0;
    bool include_usage = false;
    bool logprobs = false;
    uint8_t top_logprobs = 0;
    bool return_token_ids = false;
    uint32_t prompt_tokens = 0;  ///< of all prompts
    std::string echoed = {};     ///< GenerationRequest's
    bool base64 = false;         ///< likewise
    const text::Vocabulary* vocabulary = nullptr;
};

/// Thread rule: one thread. Frames are appended to `out`.
class AnswerWriter {
  public:
    explicit AnswerWriter(AnswerHead head) : head_(std::move(head)) {}
    virtual ~AnswerWriter() = default;
    AnswerWriter(const AnswerWriter&) = delete;
    AnswerWriter& operator=(const AnswerWriter&) = delete;

    virtual const char* stream_type() const noexcept = 0;  ///< its content type
    virtual Dialect dialect() const noexcept = 0;

    virtual void text(std::string& out, const ChoiceText& piece) = 0;
    /// `closing` is there for the last choice that ends.
    virtual void finish(std::string& out, const ChoiceText& rest, FinishReason reason, const Closing* closing) = 0;
    virtual void end(std::string& out, const Closing& closing) = 0;  ///< after all finishes
    virtual void progress(std::string& out, const Progress& progress) = 0;
    virtual void idle(std::string& out) = 0;  ///< a sign of life that carries nothing
    virtual void error(std::string& out, const Error& error) = 0;

    /// The body of an answer that does not stream.
    virtual std::string whole(std::span<const ChoiceText> choices, std::span<const FinishReason> reasons,
                              const Closing& closing) = 0;

  protected:
    AnswerHead head_;
};

std::unique_ptr<AnswerWriter> make_answer_writer(AnswerHead head);

/// "stop", "length" or, where the answer is over and its calls are whole, "tool_calls".
const char* finish_name(FinishReason reason, bool called = false) noexcept;

/// RFC 3339 in UTC, as Ollama's `created_at`.
std::string timestamp(int64_t unix_seconds);

}  // namespace cadans::serve
