// Vectors as OpenAI's and Ollama's routes give them.
#pragma once

#include <string>

#include "serve/dialects/answer_writer.h"

namespace cadans::serve {

/// Never streams. OpenAI's is a list of objects, Ollama's newer form a list of lists, its older one a list.
class EmbeddingWriter final : public AnswerWriter {
  public:
    explicit EmbeddingWriter(AnswerHead head) : AnswerWriter(std::move(head)) {}

    const char* stream_type() const noexcept override { return "application/json"; }
    Dialect dialect() const noexcept override {
        return head_.form == AnswerForm::embeddings ? Dialect::openai : Dialect::ollama;
    }
    void text(std::string&, const ChoiceText&) override {}
    void finish(std::string&, const ChoiceText&, FinishReason, const Closing*) override {}
    void end(std::string&, const Closing&) override {}
    void progress(std::string&, const Progress&) override {}
    void idle(std::string&) override {}
    void error(std::string& out, const Error& error) override { out += error_body(error, dialect()); }
    std::string whole(std::span<const ChoiceText> choices, std::span<const FinishReason> reasons,
                      const Closing& closing) override;
};

}  // namespace cadans::serve
