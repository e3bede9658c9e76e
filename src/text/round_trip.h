// What must hold for any bytes at all: checked by the fuzzer and by the tests.
#pragma once

#include <string_view>

#include "base/check.h"
#include "text/detokenizer.h"
#include "text/test_vocabulary.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace cadans::text {

/// Tokenizers over the small vocabularies, one of each way to cut words.
inline const std::vector<Tokenizer>& small_tokenizers() {
    static const std::vector<Tokenizer> made = [] {
        std::vector<Tokenizer> all;
        for (const char* pre :
             {"llama-bpe", "qwen2", "qwen35", "gpt-4o", "tekken", "gpt-2", "smollm", "deepseek-v3", "default"})
            all.push_back(*Tokenizer::make(*Vocabulary::make(small_bpe(pre))));
        all.push_back(*Tokenizer::make(*Vocabulary::make(small_sentencepiece())));
        return all;
    }();
    return made;
}

/// Stops the process when these bytes do not survive, or become a control token, or read otherwise in two segments.
inline void check_round_trip(std::string_view given) {
    for (const Tokenizer& tokenizer : small_tokenizers()) {
        const Vocabulary& vocabulary = tokenizer.vocabulary();
        // SentencePiece writes a space as U+2581, so that one written by somebody else reads as a space.
        std::string text(given);
        constexpr std::string_view kSpaceLetter = "\xE2\x96\x81";
        const bool pieces = vocabulary.model() == VocabularyModel::sentencepiece;
        for (size_t at = 0; pieces && (at = text.find(kSpaceLetter, at)) != text.npos; at++)
            text.replace(at, kSpaceLetter.size(), " ");
        const auto ids = tokenizer.encode(given, {.add_special = false});
        std::string bytes;
        Detokenizer detokenizer(vocabulary, {.at_start = true});
        std::string shown;
        for (const TokenId id : ids) {
            check(!vocabulary.is_control(id), "plain text yields no control token");
            bytes += vocabulary.bytes(id);
            shown += detokenizer.push(id);
        }
        shown += detokenizer.finish();
        const bool composes = vocabulary.pre() == "qwen2" || vocabulary.pre() == "qwen35";
        if (vocabulary.add_space_prefix() && !text.empty()) bytes.erase(0, 1);
        check(composes || bytes == text, "the bytes of the tokens are the bytes of the text");
        check(composes || shown == utf8_repaired(text), "what streams out is the text");
        const size_t cut = text.size() / 2;
        const std::vector<Segment> halves = {{std::string(text.substr(0, cut)), false},
                                             {std::string(text.substr(cut)), true}};
        const std::vector<Segment> whole = {{std::string(text), false}};
        for (const TokenId id : tokenizer.encode(whole))
            check(!vocabulary.is_control(id) || id == vocabulary.bos(), "untrusted text yields no control token");
        check(!tokenizer.encode(halves).empty() || text.empty(), "segments give tokens");
    }
}

}  // namespace cadans::text
