#include "text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/bpe.h"
#include "text/pre_tokenizer.h"
#include "text/sentencepiece.h"
#include "text/special_matcher.h"

namespace cadans::text {
namespace {

/// The end of the stretch of trusted text that holds each place.
class Trust {
  public:
    void append(size_t end, bool trusted) {
        if (!runs_.empty() && runs_.back().trusted == trusted)
            runs_.back().end = end;
        else
            runs_.push_back({end, trusted});
    }

    bool covers(size_t begin, size_t end) const {
        const auto run =
            std::upper_bound(runs_.begin(), runs_.end(), begin, [](size_t at, const Run& r) { return at < r.end; });
        return run != runs_.end() && run->trusted && end <= run->end;
    }

  private:
    struct Run {
        size_t end;
        bool trusted;
    };
    std::vector<Run> runs_;
};

/// A name that is meant as markup, such as "<think>" or "[INST]", rather than text such as a run of newlines.
bool looks_like_markup(std::string_view name) {
    return name.size() > 2 &&
           ((name.front() == '<' && name.back() == '>') || (name.front() == '[' && name.back() == ']'));
}

}  // namespace

struct Tokenizer::Parts {
    const Vocabulary& vocabulary;
    PreTokenizer pre;
    SpecialMatcher specials;

    template <class Allowed>
    void encode(std::string_view text, const Allowed& allowed, std::vector<TokenId>& ids) const {
        bool after_special = true;  // SentencePiece puts its space at the beginning and after named tokens
        SpecialMatch match{};
        for (size_t at = 0; at < text.size();) {
            const bool found = specials.find(text, at, allowed, match);
            const std::string_view plain = text.substr(at, (found ? match.begin : text.size()) - at);
            if (!plain.empty()) encode_plain(plain, after_special, ids);
            if (!found) break;
            ids.push_back(match.id);
            after_special = true;
            at = match.end;
        }
    }

    void encode_plain(std::string_view text, bool after_special, std::vector<TokenId>& ids) const {
        if (vocabulary.model() == VocabularyModel::byte_bpe)
            encode_bpe(vocabulary, pre, text, ids);
        else
            encode_sentencepiece(vocabulary, text, after_special && vocabulary.add_space_prefix(), ids);
    }
};

Tokenizer::Tokenizer(std::unique_ptr<Vocabulary> vocabulary, std::unique_ptr<Parts> parts)
    : vocabulary_(std::move(vocabulary)), parts_(std::move(parts)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::make(Vocabulary vocabulary) {
    PreTokenizer pre;
    if (vocabulary.model() == VocabularyModel::byte_bpe) {
        auto found = find_pre_tokenizer(vocabulary.pre());
        if (!found)
            return unsupported(fmt::format("pre-tokenizer \"{}\" is not supported", vocabulary.pre()),
                               "tokenizer.ggml.pre");
        pre = *std::move(found);
    }
    auto owned = std::make_unique<Vocabulary>(std::move(vocabulary));
    auto parts = std::make_unique<Parts>(Parts{*owned, std::move(pre), SpecialMatcher(*owned)});
    return Tokenizer(std::move(owned), std::move(parts));
}

size_t Tokenizer::fewest_tokens(size_t bytes) const noexcept {
    constexpr size_t kComposed =
        3;  // NFC makes no text shorter than a third in practice: three code points of equal length into one
    return bytes / (size_t{vocabulary_->longest_token_bytes()} * (parts_->pre.nfc ? kComposed : 1));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
    std::vector<TokenId> ids;
    ids.reserve(text.size() / 3 + 2);
    if (options.add_special && vocabulary_->add_bos() && vocabulary_->bos()) ids.push_back(*vocabulary_->bos());
    const auto allowed = [&](const SpecialMatch& match) {
        return options.parse_special || !vocabulary_->is_control(match.id);
    };
    parts_->encode(text, allowed, ids);
    if (options.add_special && vocabulary_->add_eos() && vocabulary_->eos()) ids.push_back(*vocabulary_->eos());
    return ids;
}

std::vector<TokenId> Tokenizer::encode(std::span<const Segment> segments, std::span<const TokenId> markers) const {
    std::string text;
    Trust trust;
    for (const Segment& segment : segments) {
        if (segment.text.empty()) continue;
        text += segment.text;
        trust.append(text.size(), segment.trusted);
    }
    const auto allowed = [&](const SpecialMatch& match) {
        const bool guarded =
            vocabulary_->is_control(match.id) || std::find(markers.begin(), markers.end(), match.id) != markers.end();
        return !guarded || trust.covers(match.begin, match.end);
    };
    std::vector<TokenId> ids;
    ids.reserve(text.size() / 3 + 2);
    parts_->encode(text, allowed, ids);
    const auto bos = vocabulary_->bos();
    if (vocabulary_->add_bos() && bos && (ids.empty() || ids.front() != *bos)) ids.insert(ids.begin(), *bos);
    return ids;
}

std::vector<TokenId> Tokenizer::markers_of(std::string_view template_source) const {
    std::vector<TokenId> markers;
    for (uint32_t i = 0; i < vocabulary_->size(); i++) {
        const TokenId id{i};
        const std::string_view name = vocabulary_->bytes(id);
        if (vocabulary_->kind(id) == TokenKind::user_defined && looks_like_markup(name) &&
            template_source.find(name) != std::string_view::npos)
            markers.push_back(id);
    }
    return markers;
}

}  // namespace cadans::text
