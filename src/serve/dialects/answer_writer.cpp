#include "serve/dialects/answer_writer.h"

#include "serve/dialects/anthropic_writer.h"
#include "serve/dialects/embedding_writer.h"
#include "serve/dialects/ollama_writer.h"
#include "serve/dialects/openai_writer.h"
#include "serve/dialects/responses_writer.h"

namespace cadans::serve {

std::unique_ptr<AnswerWriter> make_answer_writer(AnswerHead head) {
    if (head.form == AnswerForm::chat || head.form == AnswerForm::completion)
        return std::make_unique<OpenAiWriter>(std::move(head));
    if (head.form == AnswerForm::responses) return std::make_unique<ResponsesWriter>(std::move(head));
    if (head.form == AnswerForm::messages) return std::make_unique<AnthropicWriter>(std::move(head));
    if (head.form == AnswerForm::embeddings || head.form == AnswerForm::ollama_embed ||
        head.form == AnswerForm::ollama_embeddings)
        return std::make_unique<EmbeddingWriter>(std::move(head));
    return std::make_unique<OllamaWriter>(std::move(head));
}

const char* finish_name(FinishReason reason, bool called) noexcept {
    if (reason == FinishReason::length) return "length";
    return called ? "tool_calls" : "stop";
}

std::vector<CallText> whole_calls(std::span<const CallText> pieces) {
    std::vector<CallText> out;
    for (const CallText& piece : pieces) {
        if (piece.first) {
            out.push_back(piece);
            continue;
        }
        out.back().arguments += piece.arguments;
        out.back().last = piece.last;
    }
    return out;
}

}  // namespace cadans::serve
