#include "text/special_matcher.h"

#include <algorithm>

namespace cadans::text {
namespace {

struct Name {
    std::string_view text;
    TokenId id;
};

std::vector<Name> named_tokens(const Vocabulary& vocabulary) {
    std::vector<Name> names;
    for (uint32_t i = 0; i < vocabulary.size(); i++) {
        const TokenId id{i};
        const bool named = vocabulary.is_control(id) || vocabulary.kind(id) == TokenKind::user_defined;
        if (named && !vocabulary.bytes(id).empty()) names.push_back({vocabulary.bytes(id), id});
    }
    std::stable_sort(names.begin(), names.end(), [](const Name& a, const Name& b) { return a.text < b.text; });
    names.erase(std::unique(names.begin(), names.end(), [](const Name& a, const Name& b) { return a.text == b.text; }),
                names.end());
    return names;
}

}  // namespace

SpecialMatcher::SpecialMatcher(const Vocabulary& vocabulary) : nodes_(1), first_(256, 0) {
    const std::vector<Name> names = named_tokens(vocabulary);
    struct Range {
        uint32_t node;
        size_t begin, end, depth;  // names that share their first `depth` bytes, the way to `node`
    };
    std::vector<Range> open = {{0, 0, names.size(), 0}};
    for (size_t next = 0; next < open.size(); next++) {
        const Range range = open[next];
        size_t i = range.begin;
        if (i < range.end && names[i].text.size() == range.depth) {
            nodes_[range.node].ends = true;
            nodes_[range.node].token = names[i++].id;
        }
        nodes_[range.node].edges_begin = static_cast<uint32_t>(edges_.size());
        while (i < range.end) {
            const char byte = names[i].text[range.depth];
            size_t j = i;
            while (j < range.end && names[j].text[range.depth] == byte) j++;
            const auto node = static_cast<uint32_t>(nodes_.size());
            nodes_.emplace_back();
            edges_.push_back({static_cast<uint8_t>(byte), node});
            open.push_back({node, i, j, range.depth + 1});
            i = j;
        }
        nodes_[range.node].edges_end = static_cast<uint32_t>(edges_.size());
    }
    for (uint32_t byte = 0; byte < 256; byte++) first_[byte] = child(0, static_cast<uint8_t>(byte));
}

uint32_t SpecialMatcher::child(uint32_t node, uint8_t byte) const noexcept {
    const auto begin = edges_.begin() + nodes_[node].edges_begin, end = edges_.begin() + nodes_[node].edges_end;
    const auto edge = std::lower_bound(begin, end, byte, [](const Edge& e, uint8_t b) { return e.byte < b; });
    return edge != end && edge->byte == byte ? edge->node : 0;
}

}  // namespace cadans::text
