#include "serve/forms/answer_grammar.h"

#include <algorithm>
#include <array>
#include <new>

#include "base/check.h"

namespace cadans::serve {

bool AnswerGrammar::allowed(ConstraintState at, std::span<uint64_t> bits) {
    const size_t words = tokens_->trie().words();
    check(bits.size() >= words, "a model has a row for each token of its vocabulary");
    std::fill(bits.begin() + static_cast<std::ptrdiff_t>(words), bits.end(), 0);
    const bool good = mask_.fill(grammar::Matcher(stacks_, at), bits.first(words)).has_value();
    bytes_.store(grammar_.bytes() + stacks_.bytes() + mask_.bytes(), std::memory_order_relaxed);
    return good && std::ranges::any_of(bits, [](uint64_t word) { return word != 0; });
}

ConstraintState AnswerGrammar::after(ConstraintState at, TokenId token) {
    if (tokens_->ends(token)) return at;
    grammar::Matcher matcher(stacks_, at);
    check(matcher.accept(tokens_->bytes(token)), "a token is drawn only where the grammar allows it");
    return matcher.at();
}

uint32_t AnswerGrammar::forced(ConstraintState at, std::span<TokenId> out) noexcept {
    try {
        std::array<char, kForcedBytes> buffer;
        std::string_view rest = grammar::Matcher(stacks_, at).forced(buffer);
        uint32_t count = 0;
        while (count < out.size() && !rest.empty()) {
            const std::optional<TokenId> token = tokens_->trie().longest(rest);
            if (!token) break;
            out[count++] = *token;
            rest.remove_prefix(tokens_->bytes(*token).size());
        }
        return count;
    } catch (const std::bad_alloc&) {  // whoever draws here finds out
        return 0;
    }
}

bool AnswerGrammar::complete(ConstraintState at) { return grammar::Matcher(stacks_, at).must_end(); }

}  // namespace cadans::serve
