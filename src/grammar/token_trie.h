// The tokens of a vocabulary as a tree of their bytes, made once for a model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace cadans::grammar {

/// Nodes stand in preorder, so a walk reads them in order and leaves out a subtree with one jump. There are two trees
/// in one array: the *plain* tokens and the others. A plain token is whole UTF-8 characters that a JSON string holds
/// unescaped; most are, and what a string allows of them is a question of their length alone.
///
/// Thread rule: immutable, thread-safe
class TokenTrie {
  public:
    using Node = uint32_t;
    static constexpr uint32_t kTokenBytesMax = 4096;

    struct NodeData {
        uint32_t end;          ///< the node behind this subtree
        uint32_t first_token;  ///< its own tokens: from here to that of the next node
        uint16_t depth;        ///< bytes from its root
        uint8_t byte;
    };

    /// tokens  bytes of each id; empty for one that is not text (control, unused), which no grammar allows
    /// ends    tokens that end an answer; allowed where the grammar may end, and nowhere else
    /// Errors  bad_input: a token longer than kTokenBytesMax, an end that is no token
    static Result<TokenTrie> make(std::span<const std::string_view> tokens, std::span<const TokenId> ends);

    uint32_t tokens() const noexcept { return tokens_; }
    size_t words() const noexcept { return (tokens_ + 63) / 64; }  ///< of a bitset over all tokens
    std::span<const TokenId> ends() const noexcept { return ends_; }

    Node plain() const noexcept { return 0; }  ///< root
    Node unplain() const noexcept { return unplain_; }
    const NodeData& node(Node node) const noexcept { return nodes_[node]; }
    size_t nodes() const noexcept { return nodes_.size() - 1; }
    bool has_children(Node node) const noexcept { return nodes_[node].end > node + 1; }
    std::span<const uint32_t> tokens_at(Node node) const noexcept {
        const uint32_t begin = nodes_[node].first_token;
        return {order_.data() + begin, nodes_[node + 1].first_token - begin};
    }

    /// Those of all its subtree.
    std::span<const uint32_t> tokens_below(Node node) const noexcept {
        const uint32_t begin = nodes_[node].first_token;
        return {order_.data() + begin, nodes_[nodes_[node].end].first_token - begin};
    }

    /// The longest token whose bytes are the beginning of `text`; of two that spell the same, the lower id.
    /// Cost: for each byte of it, a pass over the children of a node
    std::optional<TokenId> longest(std::string_view text) const noexcept;

    /// Characters of the longest plain token.
    uint32_t longest_plain() const noexcept { return longest_plain_; }
    /// Sets the bits of all plain tokens of at most so many characters. Cost: one pass over the bits
    void add_plain(uint32_t characters, std::span<uint64_t> bits) const noexcept;

    /// The child of a root (plain() or unplain()) by this byte; the root itself where there is none.
    Node child_of_root(Node root, uint8_t byte) const noexcept {
        return first_bytes_[(root == plain() ? 0 : 256) + byte];
    }

  private:
    void add_tree(std::span<const std::string_view> tokens, std::span<const uint32_t> sorted);

    uint32_t tokens_ = 0;
    std::vector<TokenId> ends_;
    std::vector<NodeData> nodes_;               // and one behind the last
    std::vector<uint32_t> order_;               // tokens as the nodes come
    static constexpr uint32_t kPlainRows = 24;  // most tokens are shorter; the others are listed
    struct LongPlain {
        uint32_t token, characters;
    };
    std::vector<uint64_t> plain_;  // row n: plain tokens of at most n characters; the last row: all
    std::vector<LongPlain> long_plain_;
    std::vector<Node> first_bytes_;
    uint32_t longest_plain_ = 0;
    Node unplain_ = 0;
};

/// Characters of a text that a JSON string holds unescaped, or 0 when some byte of it is something else.
uint32_t plain_characters(std::string_view text) noexcept;

}  // namespace cadans::grammar
