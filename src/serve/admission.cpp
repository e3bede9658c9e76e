#include "serve/admission.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/clock.h"
#include "base/random.h"
#include "serve/token_stream.h"

namespace cadans::serve {

namespace {

std::string spelling(const text::Vocabulary& vocabulary, std::optional<TokenId> id) {
    return id ? std::string(vocabulary.bytes(*id)) : std::string();
}

bool is_chat(const GenerationRequest& request) { return std::holds_alternative<Conversation>(request.prompt); }

const char* prompt_field(const GenerationRequest& request) {
    if (request.form == AnswerForm::responses || request.form == AnswerForm::embeddings ||
        request.form == AnswerForm::ollama_embed)
        return "input";
    const bool text = request.form == AnswerForm::completion || request.form == AnswerForm::ollama_generate ||
                      request.form == AnswerForm::ollama_embeddings;
    return text ? "prompt" : "messages";
}

// What one request may use, and who says so.
struct ContextLimit {
    uint64_t tokens;
    const char* set_by;
};

ContextLimit context_of(const GenerationRequest& request) {
    const uint64_t own = request.model->context_tokens;
    if (request.context_tokens && *request.context_tokens < own)
        return {*request.context_tokens, "options.num_ctx lowered it"};
    return {own, "the server's --context sets it"};
}

Error too_long(const GenerationRequest& request, const std::string& prompt_tokens, const ContextLimit& context) {
    return {ErrorCode::too_long,
            "the prompt has " + prompt_tokens + " tokens, but one request may use " + std::to_string(context.tokens) +
                ", prompt and answer together (" + context.set_by + ")",
            prompt_field(request)};
}

// Refuses a text whose length in bytes alone says that it cannot fit: tokenizing megabytes would hold others up.
Status could_fit(const GenerationRequest& request, size_t bytes) {
    const ContextLimit context = context_of(request);
    const size_t fewest = request.model->tokenizer->fewest_tokens(bytes);
    if (fewest > context.tokens) return too_long(request, "at least " + std::to_string(fewest), context);
    return Ok{};
}

// A template counts the messages that it was given; the client wants the place of the one that it sent.
Error placed(Error error, const Conversation& conversation) {
    constexpr std::string_view kCounted = "messages[";
    if (!error.where.starts_with(kCounted)) return error;
    size_t number = 0;
    std::from_chars(error.where.data() + kCounted.size(), error.where.data() + error.where.size(), number);
    error.where = number < conversation.places.size() ? conversation.places[number] : std::string();
    return error;
}

Result<AdmittedPrompt> tokenize_chat(const GenerationRequest& request, bool& reasoning_open) {
    const ServedModel& model = *request.model;
    const auto& conversation = std::get<Conversation>(request.prompt);
    const text::Vocabulary& vocabulary = model.tokenizer->vocabulary();
    text::RenderOptions options;
    options.add_generation_prompt = conversation.add_generation_prompt;
    options.bos_token = spelling(vocabulary, vocabulary.bos());
    options.eos_token = spelling(vocabulary, vocabulary.eos());
    options.variables = conversation.variables;
    options.tools = conversation.tools;
    options.now_unix_seconds = unix_seconds();
    Result<std::vector<text::Segment>> segments = model.chat_template->render(conversation.messages, options);
    if (!segments) return placed(std::move(segments).error(), conversation);
    size_t bytes = 0;
    for (const text::Segment& segment : *segments) bytes += segment.text.size();
    if (Status fits = could_fit(request, bytes); !fits) return std::move(fits).error();
    if (model.reasoning && request.split_reasoning) {
        std::string tail;
        for (const text::Segment& segment : *segments) tail += segment.text;
        reasoning_open = text::opens_reasoning(tail, *model.reasoning);
    }
    AdmittedPrompt out;
    out.ids = model.tokenizer->encode(*segments, model.markers);
    return out;
}

// Characters before each token of a prompt: what a begin token that we added stands for is not in the text.
void note_offsets(const GenerationRequest& request, bool shows_control, AdmittedPrompt& prompt) {
    const text::Vocabulary& vocabulary = request.model->tokenizer->vocabulary();
    text::Detokenizer detokenizer(vocabulary, {.skip_control = !shows_control, .at_start = true});
    const bool begin_added = shows_control && !prompt.ids.empty() && vocabulary.bos() == prompt.ids.front() &&
                             !prompt.echo.starts_with(vocabulary.bytes(prompt.ids.front()));
    uint32_t characters = 0;
    for (size_t i = 0; i < prompt.ids.size(); ++i) {
        prompt.offsets.push_back(characters);
        if (i == 0 && begin_added) continue;
        characters += count_characters(detokenizer.push(prompt.ids[i]));
    }
}

AdmittedPrompt tokenize_text(const GenerationRequest& request, const PromptText& text) {
    AdmittedPrompt out;
    out.ids = request.model->tokenizer->encode(
        text, {.add_special = request.add_special, .parse_special = request.parse_special});
    if (!request.echo) return out;
    out.echo = text;
    if (request.logprobs) note_offsets(request, request.parse_special, out);
    return out;
}

AdmittedPrompt take_ids(const GenerationRequest& request, const PromptIds& ids) {
    AdmittedPrompt out;
    out.ids = ids;
    if (!request.echo) return out;
    out.echo = text::detokenize(request.model->tokenizer->vocabulary(), ids, {.skip_control = true, .at_start = true});
    if (request.logprobs) note_offsets(request, false, out);
    return out;
}

size_t prompt_count(const GenerationRequest& request) {
    if (const auto* texts = std::get_if<std::vector<PromptText>>(&request.prompt)) return texts->size();
    if (const auto* lists = std::get_if<std::vector<PromptIds>>(&request.prompt)) return lists->size();
    return 1;
}

// Answers to one call are drawn side by side. Of vectors a call may have thousands: they come after one another, and
// leave room for others.
uint32_t places_for(const GenerationRequest& request, const runtime::Inbox& inbox) {
    const size_t sequences = prompt_count(request) * request.choices;
    const uint32_t most = request.embedding ? std::max(1U, inbox.modest_share()) : 1U << 30;
    return static_cast<uint32_t>(std::min<size_t>(sequences, most));
}

// The tokens one answer to this prompt may have, or why it can have none.
Result<uint32_t> answer_tokens(const GenerationRequest& request, size_t prompt_tokens) {
    const std::string where = prompt_field(request);
    if (prompt_tokens == 0)
        return bad_input(where + ": it is empty, and this model has no begin token to start from", where);
    const ContextLimit context = context_of(request);
    const bool wants_answer = request.max_tokens != uint64_t{0};
    if (prompt_tokens + (wants_answer ? 1 : 0) > context.tokens)
        return too_long(request, std::to_string(prompt_tokens), context);
    const uint64_t room = context.tokens - prompt_tokens;
    return static_cast<uint32_t>(std::min<uint64_t>(request.max_tokens.value_or(context.tokens), room));
}

std::vector<TokenId> end_tokens(const GenerationRequest& request) {
    std::vector<TokenId> out = request.stop_tokens;
    const auto ends = request.model->tokenizer->vocabulary().end_of_generation();
    if (!request.ignore_eos) out.insert(out.end(), ends.begin(), ends.end());
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

// End tokens are forbidden by a bias that outweighs any that the client gave them.
void forbid_end_tokens(const text::Vocabulary& vocabulary, std::vector<LogitBias>& biases) {
    std::erase_if(biases, [&](const LogitBias& bias) { return vocabulary.ends_generation(bias.token); });
    for (const TokenId id : vocabulary.end_of_generation())
        biases.push_back({id, -std::numeric_limits<float>::infinity()});
    std::sort(biases.begin(), biases.end(), [](const LogitBias& a, const LogitBias& b) { return a.token < b.token; });
}

Result<std::vector<AdmittedPrompt>> tokenize_all(const GenerationRequest& request, bool& reasoning_open) {
    std::vector<AdmittedPrompt> out;
    if (is_chat(request)) {
        Result<AdmittedPrompt> prompt = tokenize_chat(request, reasoning_open);
        if (!prompt) return std::move(prompt).error();
        out.push_back(*std::move(prompt));
    } else if (const auto* texts = std::get_if<std::vector<PromptText>>(&request.prompt)) {
        for (const PromptText& text : *texts)
            if (Status fits = could_fit(request, text.size()); !fits) return std::move(fits).error();
        for (const PromptText& text : *texts) out.push_back(tokenize_text(request, text));
    } else {
        for (const PromptIds& ids : std::get<std::vector<PromptIds>>(request.prompt))
            out.push_back(take_ids(request, ids));
    }
    return out;
}

// Thinking that is told from the text may come in front of a form; what is left in the text is part of it.
Lead lead_of(const GenerationRequest& request, const Admitted& admitted) {
    if (!is_chat(request) || !request.split_reasoning) return Lead::none;
    return admitted.reasoning_open ? Lead::rest : Lead::thinking;
}

}  // namespace

Result<size_t> count_prompt(const GenerationRequest& request) {
    bool reasoning_open = false;
    Result<std::vector<AdmittedPrompt>> prompts = tokenize_all(request, reasoning_open);
    if (!prompts) return std::move(prompts).error();
    size_t tokens = 0;
    for (const AdmittedPrompt& prompt : *prompts) tokens += prompt.ids.size();
    return tokens;
}

Result<Admitted> admit(GenerationRequest request, RequestId id, uint64_t scope, runtime::Inbox& inbox,
                       metrics::RequestRecord& record) {
    Admitted out;
    Result<runtime::Place> place =
        inbox.reserve(places_for(request, inbox), steady_now(), {scope, request.priority == Priority::background});
    if (!place) {
        Error error = std::move(place).error();
        // Too many answers in one call is the asker's to mend, not a body that is too large.
        if (error.code == ErrorCode::too_large) {
            error.code = ErrorCode::bad_input;
            error.where = request.choices > 1 ? "n" : prompt_field(request);
        }
        return error;
    }
    out.place = *std::move(place);
    Result<std::vector<AdmittedPrompt>> prompts = tokenize_all(request, out.reasoning_open);
    if (!prompts) return std::move(prompts).error();
    out.prompts = *std::move(prompts);
    // Before a grammar is compiled for them.
    std::vector<uint32_t> most;
    for (const AdmittedPrompt& prompt : out.prompts) {
        Result<uint32_t> tokens = answer_tokens(request, prompt.ids.size());
        if (!tokens) return std::move(tokens).error();
        most.push_back(*tokens);
    }

    out.seed = request.seed.value_or(fresh_seed() >> 11);  // 53 bits: every client can send it back
    SequenceRequest sequence;
    sequence.request = id;
    sequence.model = request.model->model;
    sequence.end_tokens = end_tokens(request);
    sequence.sampling = request.sampling;
    sequence.sampling.seed = out.seed;
    const Nanos asked = steady_now();
    Result<std::shared_ptr<AnswerGrammar>> held =
        request.model->grammars->get(request.text_form, request.tools, lead_of(request, out));
    if (!held) return std::move(held).error();
    if (*held != nullptr) record.made_mask({asked, steady_now()});
    if (request.text_form.kind != TextForm::Kind::any)
        out.after_thinking = (*held)->spaced() ? text::AfterThinking::spaced_form : text::AfterThinking::form;
    sequence.constraint = *std::move(held);
    if (request.ignore_eos) forbid_end_tokens(request.model->tokenizer->vocabulary(), sequence.sampling.logit_bias);
    sequence.score_prompt = request.echo && request.logprobs;
    sequence.priority = request.priority;
    sequence.scope = scope;
    sequence.speculation = request.speculation;
    // Where nobody is named, askers are not told apart: then no answer is recalled.
    sequence.recalls = request.cache_prompt && !request.user.empty();
    // Of a mean every row counts, so none may come from the cache.
    sequence.cache_prompt = request.cache_prompt && (!request.embedding || request.embedding == Pooling::last);
    for (size_t i = 0; i < out.prompts.size(); ++i) {
        for (uint32_t choice = 0; choice < request.choices; ++choice) {
            sequence.prompt = out.prompts[i].ids;
            if (request.embedding)
                sequence.embedding =
                    std::make_shared<Embedding>(*request.embedding, request.model->file.embedding_length);
            sequence.max_new_tokens = most[i];
            sequence.sampling.choice = choice;
            out.sequences.push_back(sequence);
        }
    }
    out.request = std::move(request);
    record.tokenized(steady_now());
    return out;
}

}  // namespace cadans::serve
