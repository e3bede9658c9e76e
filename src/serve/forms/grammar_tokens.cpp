#include "serve/forms/grammar_tokens.h"

#include <algorithm>
#include <array>
#include <string>

namespace cadans::serve {

namespace {

bool stands_for_text(const text::Vocabulary& vocabulary, TokenId id) {
    return !vocabulary.is_control(id) && !vocabulary.is_padding(id) && !vocabulary.ends_generation(id);
}

/// Bytes that no text in UTF-8 has.
bool is_in_text(unsigned byte) { return byte != 0xC0 && byte != 0xC1 && byte <= 0xF4; }

}  // namespace

Result<std::shared_ptr<GrammarTokens>> GrammarTokens::make(const text::Vocabulary& vocabulary,
                                                           std::span<const TokenId> marks) {
    std::vector<bool> is_text(vocabulary.size());
    std::vector<std::string_view> bytes(vocabulary.size());
    std::array<bool, 256> written{};
    for (uint32_t i = 0; i < vocabulary.size(); ++i) {
        const TokenId id{i};
        const bool mark = std::find(marks.begin(), marks.end(), id) != marks.end() && !vocabulary.ends_generation(id);
        is_text[i] = mark || stands_for_text(vocabulary, id);
        if (!is_text[i]) continue;
        bytes[i] = vocabulary.bytes(id);
        if (bytes[i].size() == 1) written[static_cast<uint8_t>(bytes[i][0])] = true;
    }
    for (unsigned byte = 0; byte < 256; ++byte)
        if (is_in_text(byte) && !written[byte])
            return unsupported("this model cannot be held to a grammar: its vocabulary has no token for byte " +
                               std::to_string(byte));
    Result<grammar::TokenTrie> trie = grammar::TokenTrie::make(bytes, vocabulary.end_of_generation());
    if (!trie) return std::move(trie).error();
    return std::shared_ptr<GrammarTokens>(new GrammarTokens(vocabulary, std::move(is_text), *std::move(trie)));
}

}  // namespace cadans::serve
