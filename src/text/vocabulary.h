// A model's tokens: their bytes, their kinds, and the few that mean something to a conversation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "text/text_index.h"

namespace cadans::text {

/// What a token is for, numbered as model files number it.
enum class TokenKind : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

/// How a vocabulary turns text into tokens.
enum class VocabularyModel : uint8_t {
    byte_bpe,       ///< "gpt2": byte-level pairs merged by rank
    sentencepiece,  ///< "llama": characters merged by score, bytes as a last resort
};

/// A vocabulary as a file spells it; nothing checked yet.
struct VocabularyData {
    std::string model;                 ///< "gpt2" or "llama"
    std::string pre;                   ///< name of the pre-tokenizer; may be empty
    std::vector<std::string> tokens;   ///< text of each id, in the file's own alphabet
    std::vector<float> scores;         ///< empty, or one a token; needed by "llama"
    std::vector<int32_t> token_types;  ///< empty (all normal), or one a token: the numbers of TokenKind
    std::vector<std::string> merges;   ///< "left right", best first; needed by "gpt2"

    std::optional<uint32_t> bos, eos, eot, eom, unknown, padding;
    std::optional<bool> add_bos, add_eos, add_space_prefix;  ///< absent: the habit of the model kind
};

/// Immutable and thread-safe once made.
class Vocabulary {
  public:
    /// A merge of two tokens: its rank (0 is best) and the token it makes.
    struct Merge {
        uint32_t rank;
        TokenId made;
    };

    /// Checks all of `data` against itself: counts agree, kinds are known, texts are below 4 KiB,
    /// special ids are in range, merges name known tokens, scores are finite.
    ///
    /// Errors  bad_input with the field in `where` (`tokenizer.ggml.…`); unsupported for another model kind
    /// Cost    one pass over all tokens and merges; about 0.1 s for 250,000 tokens
    static Result<Vocabulary> make(VocabularyData data);

    VocabularyModel model() const noexcept { return model_; }
    const std::string& pre() const noexcept { return pre_; }
    uint32_t size() const noexcept { return static_cast<uint32_t>(kinds_.size()); }
    bool contains(TokenId id) const noexcept { return index(id) < size(); }

    /// The bytes that this token stands for in text. Control tokens give their name. Empty for an unknown id.
    std::string_view bytes(TokenId id) const noexcept;

    /// The token as the file writes it (byte-level alphabet, U+2581 for a space). Empty for an unknown id.
    std::string_view spelling(TokenId id) const noexcept;

    TokenKind kind(TokenId id) const noexcept { return contains(id) ? kinds_[index(id)] : TokenKind::unused; }
    float score(TokenId id) const noexcept { return scores_.empty() || !contains(id) ? 0.0f : scores_[index(id)]; }

    /// True for tokens that are instructions to the model rather than text (control and unknown).
    bool is_control(TokenId id) const noexcept;

    /// True for rows that only fill the table up: never chosen, never accepted from a client.
    bool is_padding(TokenId id) const noexcept { return kind(id) == TokenKind::unused; }

    /// True for a token after which the model has nothing more to say.
    bool ends_generation(TokenId id) const noexcept;
    std::span<const TokenId> end_of_generation() const noexcept { return end_of_generation_; }  ///< ascending

    /// Bytes of text that one token stands for at most: a text of n bytes has at least n / this many tokens.
    uint32_t longest_token_bytes() const noexcept { return longest_token_bytes_; }

    std::optional<TokenId> bos() const noexcept { return bos_; }
    std::optional<TokenId> eos() const noexcept { return eos_; }
    std::optional<TokenId> eot() const noexcept { return eot_; }
    std::optional<TokenId> unknown() const noexcept { return unknown_; }
    std::optional<TokenId> padding() const noexcept { return padding_; }
    bool add_bos() const noexcept { return add_bos_; }
    bool add_eos() const noexcept { return add_eos_; }
    bool add_space_prefix() const noexcept { return add_space_prefix_; }

    /// The token with this spelling, of any kind. Where two tokens share one, the lower id.
    std::optional<TokenId> find(std::string_view spelling) const noexcept;

    /// The token that plain text may become: as find(), but never control, unknown, unused or byte tokens.
    std::optional<TokenId> find_plain(std::string_view spelling) const noexcept;

    /// The token that stands for exactly these bytes of text, if one of kind normal does (byte_bpe only).
    std::optional<TokenId> find_word(std::string_view bytes) const noexcept;

    /// The token of one raw byte ("<0xXX>", or the byte-level letter), if there is one.
    std::optional<TokenId> byte_token(uint8_t byte) const noexcept;

    /// Whether some token of plain text has a space behind this character (sentencepiece only). Where none has, text
    /// can be cut there before it is merged.
    bool joins_space(uint32_t code_point) const noexcept;

    /// How two neighbours merge (byte_bpe only), or nothing. Cost: one hash probe.
    const Merge* find_merge(TokenId left, TokenId right) const noexcept;

  private:
    Vocabulary() = default;
    friend class VocabularyBuilder;

    struct Slice {
        uint32_t begin, size;
    };

    VocabularyModel model_ = VocabularyModel::byte_bpe;
    std::string pre_;
    std::vector<char> spelling_pool_, bytes_pool_;  // vectors, so that views stay valid when this is moved
    std::vector<Slice> spellings_, bytes_;
    std::vector<TokenKind> kinds_;
    std::vector<float> scores_;
    TextIndex by_spelling_;
    TextIndex by_bytes_;                              // normal tokens of byte_bpe
    std::vector<std::pair<uint64_t, Merge>> merges_;  // open addressing, a power of two of slots
    std::vector<uint32_t> space_joiners_;             // ascending code points
    std::vector<TokenId> byte_tokens_;                // 256 entries, kNone where there is none
    std::vector<TokenId> end_of_generation_;
    uint32_t longest_token_bytes_ = 1;
    std::optional<TokenId> bos_, eos_, eot_, eom_, unknown_, padding_;
    bool add_bos_ = false, add_eos_ = false, add_space_prefix_ = false;
};

}  // namespace cadans::text
