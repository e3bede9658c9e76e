#include "grammar/token_trie.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace cadans::grammar {
namespace {

/// Bytes of the valid UTF-8 character at the front, 0 where there is none.
size_t character_bytes(std::string_view text) noexcept {
    const auto at = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0U; };
    const auto tail = [&](size_t i, unsigned lo = 0x80, unsigned hi = 0xBF) { return at(i) >= lo && at(i) <= hi; };
    const unsigned first = at(0);
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
    if (first >= 0xE0 && first <= 0xEF)
        return tail(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && tail(2) ? 3 : 0;
    if (first >= 0xF0 && first <= 0xF4)
        return tail(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF) && tail(2) && tail(3) ? 4 : 0;
    return 0;
}

}  // namespace

uint32_t plain_characters(std::string_view text) noexcept {
    uint32_t count = 0;
    while (!text.empty()) {
        const auto first = static_cast<uint8_t>(text[0]);
        const size_t bytes = character_bytes(text);
        if (bytes == 0 || first < 0x20 || first == '"' || first == '\\') return 0;
        text.remove_prefix(bytes);
        count++;
    }
    return count;
}

Result<TokenTrie> TokenTrie::make(std::span<const std::string_view> tokens, std::span<const TokenId> ends) {
    TokenTrie out;
    out.tokens_ = static_cast<uint32_t>(tokens.size());
    out.ends_.assign(ends.begin(), ends.end());
    for (const TokenId end : ends)
        if (index(end) >= tokens.size())
            return bad_input(
                fmt::format("token {} ends answers, but there are only {} tokens", index(end), tokens.size()));
    std::vector<uint32_t> sorted, plain, unplain;
    std::vector<uint32_t> characters(tokens.size());
    for (uint32_t id = 0; id < tokens.size(); id++) {
        if (tokens[id].size() > kTokenBytesMax)
            return bad_input(
                fmt::format("token {} has {} bytes, {} are allowed", id, tokens[id].size(), kTokenBytesMax));
        const bool is_end = std::find(ends.begin(), ends.end(), TokenId{id}) != ends.end();
        if (tokens[id].empty() || is_end) continue;
        sorted.push_back(id);
        characters[id] = plain_characters(tokens[id]);
    }
    const auto order = [&](uint32_t a, uint32_t b) { return tokens[a] != tokens[b] ? tokens[a] < tokens[b] : a < b; };
    std::sort(sorted.begin(), sorted.end(), order);
    out.plain_.assign((kPlainRows + 1) * out.words(), 0);
    for (const uint32_t id : sorted) {
        if (characters[id] == 0) {
            unplain.push_back(id);
            continue;
        }
        plain.push_back(id);
        for (uint32_t row = std::min(characters[id], kPlainRows); row <= kPlainRows; row++)
            out.plain_[row * out.words() + id / 64] |= uint64_t{1} << (id % 64);
        if (characters[id] >= kPlainRows) out.long_plain_.push_back({id, characters[id]});
        out.longest_plain_ = std::max(out.longest_plain_, characters[id]);
    }
    out.add_tree(tokens, plain);
    out.unplain_ = static_cast<Node>(out.nodes_.size());
    out.add_tree(tokens, unplain);
    out.nodes_.push_back({static_cast<uint32_t>(out.nodes_.size()), static_cast<uint32_t>(out.order_.size()), 0, 0});
    return out;
}

/// Tokens come sorted by their bytes, so each shares a path with the one before and adds the rest of its own.
void TokenTrie::add_tree(std::span<const std::string_view> tokens, std::span<const uint32_t> sorted) {
    std::vector<Node> path = {static_cast<Node>(nodes_.size())};
    nodes_.push_back({0, static_cast<uint32_t>(order_.size()), 0, 0});
    const auto close_to = [&](size_t depth) {
        while (path.size() > depth + 1) {
            nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
            path.pop_back();
        }
    };
    std::string_view before;
    for (const uint32_t id : sorted) {
        const std::string_view text = tokens[id];
        const auto common = static_cast<size_t>(
            std::mismatch(text.begin(), text.end(), before.begin(), before.end()).first - text.begin());
        close_to(common);
        for (size_t i = common; i < text.size(); i++) {
            path.push_back(static_cast<Node>(nodes_.size()));
            nodes_.push_back(
                {0, static_cast<uint32_t>(order_.size()), static_cast<uint16_t>(i + 1), static_cast<uint8_t>(text[i])});
        }
        order_.push_back(id);
        before = text;
    }
    close_to(0);
    nodes_[path[0]].end = static_cast<uint32_t>(nodes_.size());
    const size_t row = first_bytes_.size();
    first_bytes_.resize(row + 256, path[0]);
    for (Node child = path[0] + 1; child < nodes_.size(); child = nodes_[child].end)
        first_bytes_[row + nodes_[child].byte] = child;
}

std::optional<TokenId> TokenTrie::longest(std::string_view text) const noexcept {
    std::optional<TokenId> best;
    size_t best_length = 0;
    for (const Node root : {plain(), unplain()}) {
        Node at = root;
        for (size_t length = 1; length <= text.size(); length++) {
            const auto byte = static_cast<uint8_t>(text[length - 1]);
            const Node end = nodes_[at].end;
            Node child = at + 1;
            if (at == root) {
                child = child_of_root(root, byte);
                if (child == root) break;
            } else {
                while (child < end && nodes_[child].byte != byte) child = nodes_[child].end;
                if (child >= end) break;
            }
            at = child;
            if (length <= best_length || tokens_at(at).empty()) continue;
            best = TokenId{tokens_at(at).front()};
            best_length = length;
        }
    }
    return best;
}

void TokenTrie::add_plain(uint32_t characters, std::span<uint64_t> bits) const noexcept {
    const bool all = characters >= longest_plain_;
    const size_t row = all ? kPlainRows : std::min(characters, kPlainRows - 1);
    for (size_t i = 0; i < words(); i++) bits[i] |= plain_[row * words() + i];
    if (all || characters < kPlainRows) return;
    for (const LongPlain& token : long_plain_)
        if (token.characters <= characters) bits[token.token / 64] |= uint64_t{1} << (token.token % 64);
}

}  // namespace cadans::grammar
