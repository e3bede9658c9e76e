// What a client wants generated, checked and free of dialect: the types that cannot be wrong inside.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "flow/request.h"
#include "serve/forms/answer_form.h"
#include "serve/forms/grammar_shelf.h"
#include "serve/forms/tool_use.h"
#include "serve/http/http_message.h"
#include "serve/models/model_card.h"
#include "text/reasoning.h"

namespace cadans::serve {

/// Which route's form the answer takes.
enum class AnswerForm : uint8_t {
    chat,
    completion,
    ollama_chat,
    ollama_generate,
    messages,
    responses,
    embeddings,
    ollama_embed,
    ollama_embeddings,
};

constexpr const char* name(AnswerForm form) noexcept {
    constexpr const char* kNames[] = {"chat",      "completion", "ollama_chat",  "ollama_generate",  "messages",
                                      "responses", "embeddings", "ollama_embed", "ollama_embeddings"};
    return kNames[static_cast<uint8_t>(form)];
}

using PromptText = std::string;
using PromptIds = std::vector<TokenId>;

/// Messages that a template is to render.
struct Conversation {
    nlohmann::ordered_json messages;   ///< array of {"role", "content", …}, checked
    std::vector<std::string> places;   ///< where each stands in the body, for errors; empty: nowhere that can be named
    nlohmann::ordered_json variables;  ///< more names for the template: an object or null
    nlohmann::ordered_json tools;      ///< those that it is to show; null: none
    bool add_generation_prompt = true;
};

/// A card and what follows from it, worked out once.
struct ServedModel : ModelCard {
    explicit ServedModel(ModelCard card);

    /// What its steps cost on this machine, where that was measured: before the doors opened, or when it was loaded.
    /// Thread-safe.
    std::optional<StepCost> step_cost() const {
        return measured_.load(std::memory_order_acquire) ? std::optional(late_cost_) : cost;
    }
    /// It was measured now. Only the first time counts. Thread rule: one thread.
    void measured(const StepCost& steps) const {
        if (cost || measured_.load(std::memory_order_relaxed)) return;
        late_cost_ = steps;
        measured_.store(true, std::memory_order_release);
    }

    std::vector<TokenId> markers;                   ///< what the template marks turns with
    std::optional<text::ReasoningStyle> reasoning;  ///< how it marks thinking
    CallFormat calls;                               ///< how it calls tools
    std::unique_ptr<GrammarShelf> grammars;         ///< what its answers are held to; thread-safe

  private:
    mutable StepCost late_cost_;
    mutable std::atomic<bool> measured_{false};
};

struct GenerationRequest {
    AnswerForm form = AnswerForm::chat;
    const ServedModel* model = nullptr;

    std::variant<Conversation, std::vector<PromptText>, std::vector<PromptIds>> prompt;
    bool add_special = true;    ///< texts only: the begin token, where the file asks for it
    bool parse_special = true;  ///< texts only: names of control tokens become those tokens

    SamplingParams sampling;
    std::optional<uint64_t> seed;  ///< absent: drawn at admission
    uint32_t choices = 1;
    std::optional<uint64_t> max_tokens;      ///< absent: until the context is full
    std::optional<uint32_t> context_tokens;  ///< num_ctx: may only lower the limit
    std::vector<std::string> stop;
    std::vector<TokenId> stop_tokens;
    bool ignore_eos = false;
    TextForm text_form;                ///< what the answer's text is held to
    ToolUse tools;                     ///< what it may call
    std::optional<Pooling> embedding;  ///< vectors of the prompts are asked for, and no answers
    bool base64 = false;               ///< as their bytes

    bool stream = false;
    bool include_usage = false;
    bool include_progress = false;
    bool echo = false;
    bool logprobs = false;
    bool return_token_ids = false;
    bool split_reasoning = true;      ///< false: thinking stays in the text
    bool load_only = false;           ///< Ollama: an empty prompt only asks for the model
    std::optional<Nanos> keep_alive;  ///< how long its model then stays idle; absent: as is usual here

    std::string echoed;  ///< of `responses`: what its answer tells of the request, as members of a JSON object
    Priority priority = Priority::normal;
    std::string user;
    Speculation speculation = Speculation::as_served;
    bool cache_prompt = true;  ///< llama-server's: false neither takes from cached prefixes nor leaves any
};

/// The models that can be asked for, in the order of --model. Immutable.
class Catalog {
  public:
    explicit Catalog(std::vector<ModelCard> cards);

    /// "", "default" mean the first; NAME and, for Ollama's routes, NAME:latest. Errors: not_found at "model".
    Result<const ServedModel*> find(std::string_view name, bool ollama_names) const;

    const std::deque<ServedModel>& models() const noexcept { return models_; }

  private:
    std::deque<ServedModel> models_;  ///< they stay where they are
};

/// Bodies of `/v1/chat/completions` and `/v1/completions`. Thread-safe.
Result<GenerationRequest> parse_chat_request(const nlohmann::ordered_json& body, const Catalog& catalog);
Result<GenerationRequest> parse_completion_request(const nlohmann::ordered_json& body, const Catalog& catalog);

/// Body of `/v1/responses`. Thread-safe.
Result<GenerationRequest> parse_responses(const nlohmann::ordered_json& body, const Catalog& catalog);

/// Body of `/v1/messages`, Anthropic's. Thread-safe.
Result<GenerationRequest> parse_anthropic_messages(const nlohmann::ordered_json& body, const Catalog& catalog);

/// Bodies of `/api/chat` and `/api/generate`. Thread-safe.
Result<GenerationRequest> parse_ollama_chat(const nlohmann::ordered_json& body, const Catalog& catalog);
Result<GenerationRequest> parse_ollama_generate(const nlohmann::ordered_json& body, const Catalog& catalog);

/// Bodies of `/v1/embeddings`, `/api/embed` and `/api/embeddings`. Errors also: unsupported at "model", whose file
/// pools in a way that gives no vector. Thread-safe.
Result<GenerationRequest> parse_embeddings(const nlohmann::ordered_json& body, const Catalog& catalog);
Result<GenerationRequest> parse_ollama_embed(const nlohmann::ordered_json& body, const Catalog& catalog);
Result<GenerationRequest> parse_ollama_embeddings(const nlohmann::ordered_json& body, const Catalog& catalog);

}  // namespace cadans::serve
