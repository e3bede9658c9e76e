// Answers as Ollama's /api/chat and /api/generate give them.
#pragma once

#include <string>

#include "serve/dialects/answer_writer.h"

namespace cadans::serve {

class OllamaWriter final : public AnswerWriter {
  public:
    explicit OllamaWriter(AnswerHead head);

    const char* stream_type() const noexcept override { return "application/x-ndjson"; }
    Dialect dialect() const noexcept override { return Dialect::ollama; }
    void text(std::string& out, const ChoiceText& piece) override;
    void finish(std::string& out, const ChoiceText& rest, FinishReason reason, const Closing* closing) override;
    void end(std::string&, const Closing&) override {}  // the finishing line is the last
    void progress(std::string&, const Progress&) override {}
    void idle(std::string& out) override;
    void error(std::string& out, const Error& error) override;
    std::string whole(std::span<const ChoiceText> choices, std::span<const FinishReason> reasons,
                      const Closing& closing) override;

  private:
    void append_line(std::string& out, const ChoiceText& piece, const char* done_reason, const Closing* closing) const;

    ChoiceText complete_calls(const ChoiceText& piece);

    bool chat_;
    CallText begun_;  ///< whose arguments are coming
};

/// The answer to a request that only asks for the model to be there ("load") or gone ("unload").
std::string ollama_loaded(const AnswerHead& head, const char* reason, const metrics::OllamaDurations& durations);

}  // namespace cadans::serve
