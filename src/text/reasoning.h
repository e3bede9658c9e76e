// Parts a stream of answer text into thinking and answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cadans::text {

/// How a model marks its thinking.
struct ReasoningStyle {
    std::string open,
        close;  ///< tags around a thinking block, e.g. "<think>" and "</think>"; a word may follow the first
    bool channels = false;  ///< gpt-oss: "<|channel|>analysis<|message|>…<|end|>"; needs control tokens as text
};

/// The style that a template's source shows, or nothing when it knows of no thinking.
std::optional<ReasoningStyle> reasoning_style_of(std::string_view template_source);

/// True when a prompt ends inside an open thinking block: the answer then begins with thinking.
bool opens_reasoning(std::string_view prompt, const ReasoningStyle& style);

/// What comes behind thinking.
enum class AfterThinking : uint8_t {
    words,        ///< an answer
    form,         ///< text of which every byte counts once it has begun
    spaced_form,  ///< the same, and it may begin with white space: all of that is its own
};

struct ReasoningOutput {
    std::string reasoning, content;
};

/// Only a block at the very beginning of the answer is thinking; tags that come later are text about tags. White space
/// around the block belongs to neither. With channels every message is told from the next by its marks, up to a final
/// one that is a form. The result does not depend on how the text is cut. Thread rule: one thread.
class ReasoningSplitter {
  public:
    /// starts_inside  the prompt has opened the block already
    /// shows_calls    channels: a message whose header names a receiver comes with that header, from its <|channel|>
    /// on,
    ///                and goes to the end
    ReasoningSplitter(ReasoningStyle style, bool starts_inside, AfterThinking after = AfterThinking::words,
                      bool shows_calls = false);

    ReasoningOutput push(std::string_view piece);
    ReasoningOutput finish();

    bool in_reasoning() const noexcept;

  private:
    enum class State { before, inside, after_block, content, header, last };

    bool step(ReasoningOutput& out, bool last);
    bool step_tags(ReasoningOutput& out, bool last);
    bool step_channels(ReasoningOutput& out, bool last);
    bool step_header(ReasoningOutput& out, bool last);
    void emit(ReasoningOutput& out, std::string_view text);

    ReasoningStyle style_;
    AfterThinking after_;
    bool shows_calls_;
    State state_;
    bool analysis_ = false;  // channels: the current message is thinking
    bool started_ = false;   // the current part has shown something other than white space
    std::string held_;
};

}  // namespace cadans::text
