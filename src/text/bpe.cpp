#include "text/bpe.h"

#include <queue>

namespace cadans::text {
namespace {

using Merge = Vocabulary::Merge;

// Up to this length, looking through all pairs for the best one beats keeping a queue.
constexpr size_t kShortWord = 32;

/// Merges by scanning for the best pair each time.
void merge_short(const Vocabulary& vocabulary, std::vector<TokenId>& symbols) {
    const Merge* pairs[kShortWord];
    size_t n = symbols.size();
    for (size_t i = 0; i + 1 < n; i++) pairs[i] = vocabulary.find_merge(symbols[i], symbols[i + 1]);
    while (n > 1) {
        size_t best = n;
        for (size_t i = 0; i + 1 < n; i++) {
            if (pairs[i] != nullptr && (best == n || pairs[i]->rank < pairs[best]->rank)) best = i;
        }
        if (best == n) break;
        symbols[best] = pairs[best]->made;
        for (size_t i = best + 1; i + 1 < n; i++) {
            symbols[i] = symbols[i + 1];
            pairs[i] = pairs[i + 1];
        }
        n--;
        if (best > 0) pairs[best - 1] = vocabulary.find_merge(symbols[best - 1], symbols[best]);
        if (best + 1 < n) pairs[best] = vocabulary.find_merge(symbols[best], symbols[best + 1]);
    }
    symbols.resize(n);
}

/// Merges with a queue over a linked list.
class LongWord {
  public:
    LongWord(const Vocabulary& vocabulary, std::vector<TokenId>& symbols) : vocabulary_(vocabulary), symbols_(symbols) {
        links_.resize(symbols.size());
        for (uint32_t i = 0; i < links_.size(); i++) links_[i] = {i - 1, i + 1, nullptr};
    }

    void merge() {
        const auto n = static_cast<uint32_t>(symbols_.size());
        for (uint32_t i = 0; i + 1 < n; i++) look(i);
        while (!queue_.empty()) {
            const auto [rank, left] = queue_.top();
            queue_.pop();
            const Merge* pair = links_[left].pair;
            if (pair == nullptr || pair->rank != rank) continue;  // that pair is gone
            join(left, *pair);
        }
        size_t kept = 0;
        for (uint32_t i = 0; i < n; i = links_[i].next) symbols_[kept++] = symbols_[i];
        symbols_.resize(kept);
    }

  private:
    struct Link {
        uint32_t previous, next;
        const Merge* pair;  // with the next one
    };
    using Entry = std::pair<uint32_t, uint32_t>;  // rank, place of the left one: the leftmost of equals first

    void look(uint32_t left) {
        const uint32_t right = links_[left].next;
        links_[left].pair = right < symbols_.size() ? vocabulary_.find_merge(symbols_[left], symbols_[right]) : nullptr;
        if (links_[left].pair != nullptr) queue_.emplace(links_[left].pair->rank, left);
    }

    void join(uint32_t left, Merge pair) {
        const uint32_t right = links_[left].next;
        symbols_[left] = pair.made;
        links_[right].pair = nullptr;
        links_[left].next = links_[right].next;
        if (links_[left].next < symbols_.size()) links_[links_[left].next].previous = left;
        look(left);
        if (left > 0) look(links_[left].previous);
    }

    const Vocabulary& vocabulary_;
    std::vector<TokenId>& symbols_;
    std::vector<Link> links_;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

}  // namespace

void encode_bpe(const Vocabulary& vocabulary, const PreTokenizer& pre, std::string_view text,
                std::vector<TokenId>& ids) {
    std::string composed;
    if (pre.nfc) text = composed = to_nfc(text);
    std::vector<TokenId> symbols;
    size_t begin = 0;
    for (const uint32_t end : cut_words(pre, text)) {
        const std::string_view word = text.substr(begin, end - begin);
        begin = end;
        if (pre.whole_words) {
            if (const auto whole = vocabulary.find_word(word)) {
                ids.push_back(*whole);
                continue;
            }
        }
        symbols.clear();
        for (const char byte : word) {
            if (const auto id = vocabulary.byte_token(static_cast<uint8_t>(byte))) symbols.push_back(*id);
        }
        if (symbols.size() <= kShortWord)
            merge_short(vocabulary, symbols);
        else
            LongWord(vocabulary, symbols).merge();
        ids.insert(ids.end(), symbols.begin(), symbols.end());
    }
}

}  // namespace cadans::text
