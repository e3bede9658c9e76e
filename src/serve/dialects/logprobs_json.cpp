#include "serve/dialects/logprobs_json.h"

#include <algorithm>
#include <string>
#include <vector>

#include "serve/token_stream.h"

namespace cadans::serve {

namespace {

void write_chat_token(JsonWriter& json, TokenId token, float logprob, const text::Vocabulary& vocabulary) {
    json.key("token").text(token_name(vocabulary, token));
    json.key("logprob").number(logprob);
    json.key("bytes").array();
    for (const char c : vocabulary.bytes(token)) json.number(uint32_t{static_cast<uint8_t>(c)});
    json.close();
}

void write_top(JsonWriter& json, const TokenScore& score, const text::Vocabulary& vocabulary) {
    std::vector<std::string> names;
    const auto add = [&](TokenId token, float logprob) {
        std::string name = token_name(vocabulary, token);
        if (std::find(names.begin(), names.end(), name) != names.end()) return;
        json.key(name).number(logprob);
        names.push_back(std::move(name));
    };
    json.object();
    for (uint32_t i = 0; i < score.top_count; ++i) add(score.top[i].token, score.top[i].logprob);
    add(score.token, score.logprob);
    json.close();
}

}  // namespace

void write_chat_logprobs(JsonWriter& json, std::span<const ScoredToken> tokens, const text::Vocabulary& vocabulary) {
    json.object().key("content").array();
    for (const ScoredToken& each : tokens) {
        json.object();
        write_chat_token(json, each.score.token, each.score.logprob, vocabulary);
        json.key("top_logprobs").array();
        for (uint32_t i = 0; i < each.score.top_count; ++i) {
            json.object();
            write_chat_token(json, each.score.top[i].token, each.score.top[i].logprob, vocabulary);
            json.close();
        }
        json.close().close();
    }
    json.close().key("refusal").null().close();
}

void write_completion_logprobs(JsonWriter& json, std::span<const ScoredToken> tokens,
                               const text::Vocabulary& vocabulary) {
    json.object().key("tokens").array();
    for (const ScoredToken& each : tokens) json.text(token_name(vocabulary, each.score.token));
    json.close().key("token_logprobs").array();
    for (const ScoredToken& each : tokens) {
        if (each.scored)
            json.number(each.score.logprob);
        else
            json.null();
    }
    json.close().key("top_logprobs").array();
    for (const ScoredToken& each : tokens) {
        if (each.scored)
            write_top(json, each.score, vocabulary);
        else
            json.null();
    }
    json.close().key("text_offset").array();
    for (const ScoredToken& each : tokens) json.number(each.offset);
    json.close().close();
}

}  // namespace cadans::serve
