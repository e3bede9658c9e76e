// What all grammars of one model share: its tokens as a tree of bytes, and what was found out about them.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/token_mask.h"
#include "grammar/token_trie.h"
#include "text/vocabulary.h"

namespace cadans::serve {

/// A grammar sees text tokens, and of the control tokens only the `marks`: they are written where it asks for their
/// spelling. All others it never allows.
///
/// Thread rule: bytes() and trie from any thread; the cache on that of the steps. Borrows the vocabulary.
class GrammarTokens {
  public:
    /// Errors  bad_input: what the tree refuses
    /// Cost    one sort of the vocabulary; some 0.1 s for 250,000 tokens
    static Result<std::shared_ptr<GrammarTokens>> make(const text::Vocabulary& vocabulary,
                                                       std::span<const TokenId> marks);

    std::string_view bytes(TokenId id) const noexcept { return is_text_[index(id)] ? vocabulary_.bytes(id) : ""; }
    bool ends(TokenId id) const noexcept { return vocabulary_.ends_generation(id); }
    /// Bytes that have a token of their own: with these alone no answer comes to where no token is left. Vocabularies
    /// learned from text may lack control characters and the beginnings of rare ones.
    const grammar::Alphabet& alphabet() const noexcept { return alphabet_; }
    const grammar::TokenTrie& trie() const noexcept { return trie_; }
    grammar::MaskCache& cache() noexcept { return cache_; }

  private:
    GrammarTokens(const text::Vocabulary& vocabulary, std::vector<bool> is_text, const grammar::Alphabet& alphabet,
                  grammar::TokenTrie trie)
        : vocabulary_(vocabulary),
          is_text_(std::move(is_text)),
          alphabet_(alphabet),
          trie_(std::move(trie)),
          cache_(trie_) {}

    const text::Vocabulary& vocabulary_;
    std::vector<bool> is_text_;
    grammar::Alphabet alphabet_;
    grammar::TokenTrie trie_;
    grammar::MaskCache cache_;
};

}  // namespace cadans::serve
