#include "text/sentencepiece.h"

#include <algorithm>
#include <queue>
#include <string>
#include <unordered_map>

#include "base/secret_hash.h"
#include "text/utf8.h"

namespace cadans::text {
namespace {

constexpr std::string_view kSpaceLetter = "\xE2\x96\x81";
constexpr uint32_t kSpaceCodePoint = 0x2581;  // the same
constexpr size_t kKnownBytesMax = 48;         // longer words are rarely said twice

std::string with_space_letters(std::string_view text, bool space_prefix) {
    std::string out;
    out.reserve(text.size() + text.size() / 2);
    if (space_prefix) out.append(kSpaceLetter);
    for (const char c : text) {
        if (c == ' ')
            out.append(kSpaceLetter);
        else
            out.push_back(c);
    }
    return out;
}

/// The pieces of one word. Used again for the next one, so that its memory is.
class Pieces {
  public:
    explicit Pieces(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

    void begin(std::string_view word) {
        text_ = word;
        pieces_.clear();
        for (size_t at = 0; at < word.size();) {
            const uint32_t bytes = utf8_at(word, at).bytes;
            const auto i = static_cast<uint32_t>(pieces_.size());
            pieces_.push_back({static_cast<uint32_t>(at), bytes, i - 1, i + 1});
            at += bytes;
        }
    }

    void merge() {
        for (uint32_t i = 0; i + 1 < pieces_.size(); i++) look(i);
        while (!queue_.empty()) {
            const Candidate best = queue_.top();
            queue_.pop();
            Piece& left = pieces_[best.left];
            if (left.bytes == 0 || left.next >= pieces_.size()) continue;
            Piece& right = pieces_[left.next];
            if (left.bytes + right.bytes != best.bytes || left.next != best.right) continue;  // that pair is gone
            left.bytes = best.bytes;
            right.bytes = 0;
            left.next = right.next;
            if (left.next < pieces_.size()) pieces_[left.next].previous = best.left;
            look(best.left);
            if (best.left > 0) look(left.previous);
        }
    }

    /// `after_unknown`: the token before is the unknown one, which stands for all unknown characters in a row.
    void append_ids(std::vector<TokenId>& ids, bool& after_unknown) const {
        for (uint32_t i = 0; i < pieces_.size(); i = pieces_[i].next) {
            const std::string_view piece = text_.substr(pieces_[i].begin, pieces_[i].bytes);
            const auto id = vocabulary_.find_plain(piece);
            if (id)
                ids.push_back(*id);
            else if (!append_bytes(piece, ids) && vocabulary_.unknown() && !after_unknown)
                ids.push_back(*vocabulary_.unknown());
            after_unknown = !id && !vocabulary_.byte_token(static_cast<uint8_t>(piece[0]));
        }
    }

  private:
    struct Piece {
        uint32_t begin, bytes;  // no bytes: merged into another
        uint32_t previous, next;
    };
    struct Candidate {
        float score;
        uint32_t left, right, bytes;

        bool operator<(const Candidate& other) const noexcept {  // the queue gives the greatest first
            return score != other.score ? score < other.score : left > other.left;
        }
    };

    void look(uint32_t left) {
        const uint32_t right = pieces_[left].next;
        if (right >= pieces_.size()) return;
        const uint32_t bytes = pieces_[left].bytes + pieces_[right].bytes;
        if (const auto id = vocabulary_.find_plain(text_.substr(pieces_[left].begin, bytes)))
            queue_.push({vocabulary_.score(*id), left, right, bytes});
    }

    bool append_bytes(std::string_view piece, std::vector<TokenId>& ids) const {
        for (const char byte : piece) {
            if (!vocabulary_.byte_token(static_cast<uint8_t>(byte))) return false;
        }
        for (const char byte : piece) ids.push_back(*vocabulary_.byte_token(static_cast<uint8_t>(byte)));
        return true;
    }

    const Vocabulary& vocabulary_;
    std::string_view text_;
    std::vector<Piece> pieces_;
    std::priority_queue<Candidate> queue_;
};

/// The end of the word at `at`: before the next space that no token could join to the character in front of it.
size_t word_end(const Vocabulary& vocabulary, std::string_view text, size_t at) {
    uint32_t previous = kSpaceCodePoint;
    while (at < text.size()) {
        const Utf8Char c = utf8_at(text, at);
        if (c.code_point == kSpaceCodePoint && previous != kSpaceCodePoint && !vocabulary.joins_space(previous))
            return at;
        previous = c.code_point;
        at += c.bytes;
    }
    return at;
}

}  // namespace

void encode_sentencepiece(const Vocabulary& vocabulary, std::string_view text, bool space_prefix,
                          std::vector<TokenId>& ids) {
    if (text.empty()) return;
    const std::string spelled = with_space_letters(text, space_prefix);
    struct Place {
        size_t begin, end;  // of its ids among those of this call
    };
    // A text says most of its words more than once.
    std::unordered_map<std::string_view, Place, SecretHash> known;
    Pieces pieces(vocabulary);
    bool after_unknown = false;
    for (size_t at = 0, end = 0; at < spelled.size(); at = end) {
        end = word_end(vocabulary, spelled, at);
        const std::string_view word = std::string_view(spelled).substr(at, end - at);
        const bool fresh = !after_unknown;
        if (const auto found = known.find(word); fresh && found != known.end()) {
            const Place place = found->second;
            for (size_t i = place.begin; i < place.end; i++) ids.push_back(TokenId{ids[i]});
            continue;
        }
        const size_t begin = ids.size();
        pieces.begin(word);
        pieces.merge();
        pieces.append_ids(ids, after_unknown);
        if (fresh && !after_unknown && word.size() <= kKnownBytesMax) known.emplace(word, Place{begin, ids.size()});
    }
}

}  // namespace cadans::text
