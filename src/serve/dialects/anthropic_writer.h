// Answers as Anthropic's messages route gives them.
#pragma once

#include <string>

#include "serve/dialects/answer_writer.h"
#include "serve/dialects/json_writer.h"

namespace cadans::serve {

/// A stream is blocks, one behind the other: thinking, text, and one for each call of a tool.
class AnthropicWriter final : public AnswerWriter {
  public:
    explicit AnthropicWriter(AnswerHead head) : AnswerWriter(std::move(head)) {}

    const char* stream_type() const noexcept override { return "text/event-stream; charset=utf-8"; }
    Dialect dialect() const noexcept override { return Dialect::anthropic; }
    void text(std::string& out, const ChoiceText& piece) override;
    void finish(std::string& out, const ChoiceText& rest, FinishReason reason, const Closing* closing) override;
    void end(std::string& out, const Closing& closing) override;
    void progress(std::string&, const Progress&) override {}
    void idle(std::string& out) override;
    void error(std::string& out, const Error& error) override;
    std::string whole(std::span<const ChoiceText> choices, std::span<const FinishReason> reasons,
                      const Closing& closing) override;

  private:
    enum class Block : uint8_t { none, thinking, text, call };

    void begin(std::string& out);
    void open(std::string& out, Block block, const CallText* call);
    void close(std::string& out);
    void delta(std::string& out, const char* type, const char* field, std::string_view text) const;

    bool begun_ = false;
    Block open_ = Block::none;
    uint32_t blocks_ = 0;  ///< that have begun
};

}  // namespace cadans::serve
