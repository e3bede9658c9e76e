#include "serve/forms/grammar_tokens.h"

#include <algorithm>

namespace cadans::serve {

namespace {

bool stands_for_text(const text::Vocabulary& vocabulary, TokenId id) {
    return !vocabulary.is_control(id) && !vocabulary.is_padding(id) && !vocabulary.ends_generation(id);
}

}  // namespace

Result<std::shared_ptr<GrammarTokens>> GrammarTokens::make(const text::Vocabulary& vocabulary,
                                                           std::span<const TokenId> marks) {
    std::vector<bool> is_text(vocabulary.size());
    std::vector<std::string_view> bytes(vocabulary.size());
    grammar::Alphabet alphabet;
    for (uint32_t i = 0; i < vocabulary.size(); ++i) {
        const TokenId id{i};
        const bool mark = std::find(marks.begin(), marks.end(), id) != marks.end() && !vocabulary.ends_generation(id);
        is_text[i] = mark || stands_for_text(vocabulary, id);
        if (!is_text[i]) continue;
        bytes[i] = vocabulary.bytes(id);
        if (bytes[i].size() == 1) alphabet.set(static_cast<uint8_t>(bytes[i][0]));
    }
    for (size_t i = 0; i < bytes.size(); ++i) {
        if (std::ranges::all_of(bytes[i], [&](char byte) { return alphabet[static_cast<uint8_t>(byte)]; })) continue;
        is_text[i] = false;
        bytes[i] = {};
    }
    Result<grammar::TokenTrie> trie = grammar::TokenTrie::make(bytes, vocabulary.end_of_generation());
    if (!trie) return std::move(trie).error();
    return std::shared_ptr<GrammarTokens>(
        new GrammarTokens(vocabulary, std::move(is_text), alphabet, *std::move(trie)));
}

}  // namespace cadans::serve
