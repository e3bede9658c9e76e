// Answers as OpenAI's chat and completions routes give them.
#pragma once

#include <string>

#include "serve/dialects/answer_writer.h"

namespace cadans::serve {

class OpenAiWriter final : public AnswerWriter {
  public:
    explicit OpenAiWriter(AnswerHead head);

    const char* stream_type() const noexcept override { return "text/event-stream; charset=utf-8"; }
    Dialect dialect() const noexcept override { return Dialect::openai; }
    void text(std::string& out, const ChoiceText& piece) override;
    void finish(std::string& out, const ChoiceText& rest, FinishReason reason, const Closing* closing) override;
    void end(std::string& out, const Closing& closing) override;
    void progress(std::string& out, const Progress& progress) override;
    void idle(std::string& out) override;
    void error(std::string& out, const Error& error) override;
    std::string whole(std::span<const ChoiceText> choices, std::span<const FinishReason> reasons,
                      const Closing& closing) override;

  private:
    std::string head_text(const char* object) const;
    void append_choice(std::string& out, const ChoiceText& piece, const char* finish) const;
    void append_calls(std::string& out, std::span<const CallText> calls, bool pieces) const;
    void append_whole_choice(std::string& out, const ChoiceText& choice, const char* finish) const;
    void append_logprobs(std::string& out, const ChoiceText& piece) const;
    void append_frame(std::string& out, const ChoiceText& piece, const char* finish, const Closing* closing) const;
    void append_figures(std::string& out, const Closing& closing) const;

    bool chat_;
    std::string prefix_;  ///< all that every frame begins with
};

}  // namespace cadans::serve
