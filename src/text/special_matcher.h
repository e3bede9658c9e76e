// Finds tokens that are written into text by name.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/vocabulary.h"

namespace cadans::text {

/// One named token in a text.
struct SpecialMatch {
    size_t begin, end;
    TokenId id;
};

/// Immutable and thread-safe once made. A prefix tree over the texts of all control, unknown and user-defined tokens.
class SpecialMatcher {
  public:
    explicit SpecialMatcher(const Vocabulary& vocabulary);

    /// The first match at or after `from` that `allowed` lets pass, the longest of those that begin there.
    /// False when there is none. Cost: linear in text times the longest name.
    template <class Allowed>
    bool find(std::string_view text, size_t from, const Allowed& allowed, SpecialMatch& match) const {
        for (size_t begin = from; begin < text.size(); begin++) {
            uint32_t node = first_[static_cast<uint8_t>(text[begin])];
            bool found = false;
            for (size_t at = begin + 1; node != 0; at++) {
                if (nodes_[node].ends) {
                    const SpecialMatch candidate{begin, at, nodes_[node].token};
                    if (allowed(candidate)) {
                        match = candidate;
                        found = true;
                    }
                }
                node = at < text.size() ? child(node, static_cast<uint8_t>(text[at])) : 0;
            }
            if (found) return true;
        }
        return false;
    }

  private:
    struct Node {
        uint32_t edges_begin = 0, edges_end = 0;
        TokenId token{};
        bool ends = false;
    };
    struct Edge {
        uint8_t byte;
        uint32_t node;
    };

    uint32_t child(uint32_t node, uint8_t byte) const noexcept;

    std::vector<Node> nodes_;  // 0 is the root and stands for "no such child"
    std::vector<Edge> edges_;
    std::vector<uint32_t> first_;  // the root's child of each byte
};

}  // namespace cadans::text
