// Parts a stream of answer text into thinking and answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cadans::text {

/// How a model marks its thinking.
struct ReasoningStyle {
    std::string open, close;  ///< tags around a thinking block, e.g. "<think>" and "</think>"
    bool channels = false;    ///< gpt-oss: "<|channel|>analysis<|message|>…<|end|>"; needs control tokens as text
};

/// The style that a template's source shows, or nothing when it knows of no thinking.
std::optional<ReasoningStyle> reasoning_style_of(std::string_view template_source);

/// True when a prompt ends inside an open thinking block: the answer then begins with thinking.
bool opens_reasoning(std::string_view prompt, const ReasoningStyle& style);

struct ReasoningOutput {
    std::string reasoning, content;
};

/// Only a block at the very beginning of the answer is thinking; tags that come later are text about tags. White space
/// around the block belongs to neither. The result does not depend on how the text is cut. Thread rule: one thread.
class ReasoningSplitter {
  public:
    /// starts_inside  the prompt has opened the block already
    ReasoningSplitter(ReasoningStyle style, bool starts_inside);

    ReasoningOutput push(std::string_view piece);
    ReasoningOutput finish();

    bool in_reasoning() const noexcept;

  private:
    enum class State { before, inside, after_block, content, header };

    bool step(ReasoningOutput& out, bool last);
    bool step_tags(ReasoningOutput& out, bool last);
    bool step_channels(ReasoningOutput& out, bool last);
    void emit(ReasoningOutput& out, std::string_view text);

    ReasoningStyle style_;
    State state_;
    bool analysis_ = false;  // channels: the current message is thinking
    bool started_ = false;   // the current part has shown something other than white space
    std::string held_;
};

}  // namespace cadans::text
