#include <cmath>

#include "base/check.h"
#include "serve/dialects/json_body.h"
#include "serve/dialects/request_fuzz.h"

namespace cadans::serve {

namespace {

void check_promises(const GenerationRequest& request) {
    const text::Vocabulary& vocabulary = request.model->tokenizer->vocabulary();
    const SamplingParams& sampling = request.sampling;
    check(sampling.temperature >= 0 && sampling.temperature <= 100, "temperature is in range");
    check(sampling.top_p >= 0 && sampling.top_p <= 1, "top_p is in range");
    check(sampling.min_p >= 0 && sampling.min_p <= 1, "min_p is in range");
    check(std::isfinite(sampling.repeat_penalty) && sampling.repeat_penalty > 0, "repeat_penalty is in range");
    check(sampling.top_logprobs <= kMaxTopLogprobs, "top_logprobs is in range");
    check(request.choices >= 1 && request.choices <= 16, "n is in range");
    for (size_t i = 0; i < sampling.logit_bias.size(); ++i) {
        check(vocabulary.contains(sampling.logit_bias[i].token), "biased tokens exist");
        check(i == 0 || sampling.logit_bias[i - 1].token < sampling.logit_bias[i].token, "biases ascend");
    }
    for (const std::string& stop : request.stop) check(!stop.empty(), "stop strings are not empty");
    check((request.tools.choice == ToolChoice::none) == request.tools.tools.empty(),
          "there are tools to call, or none");
    for (const Tool& tool : request.tools.tools)
        check(!tool.name.empty() && tool.parameters.contains("type"), "a tool has a name, and its arguments a type");
    if (const auto* lists = std::get_if<std::vector<PromptIds>>(&request.prompt))
        for (const PromptIds& ids : *lists)
            for (const TokenId id : ids)
                check(vocabulary.contains(id) && !vocabulary.is_padding(id), "prompt tokens exist");
}

}  // namespace

void fuzz_request_body(std::string_view body, const Catalog& catalog) {
    Result<nlohmann::ordered_json> json = parse_body(body);
    if (!json) return;
    for (const auto parse :
         {parse_chat_request, parse_completion_request, parse_responses, parse_anthropic_messages, parse_ollama_chat,
          parse_ollama_generate, parse_embeddings, parse_ollama_embed, parse_ollama_embeddings}) {
        Result<GenerationRequest> request = parse(*json, catalog);
        if (request)
            check_promises(*request);
        else
            check(!request.error().message.empty(), "an error says something");
    }
}

}  // namespace cadans::serve
