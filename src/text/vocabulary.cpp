#include "text/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/hex.h"
#include "base/random.h"
#include "text/byte_alphabet.h"
#include "text/pre_tokenizer.h"
#include "text/utf8.h"

namespace cadans::text {
namespace {

constexpr size_t kTokensMax = 1u << 22;
constexpr size_t kTokenBytesMax = 4095;
constexpr TokenId kNone{0xFFFFFFFFu};
constexpr uint64_t kEmptySlot = ~uint64_t{0};
constexpr std::string_view kSpaceLetter = "\xE2\x96\x81";  // how SentencePiece writes a space
constexpr uint32_t kSpaceCodePoint = 0x2581;               // the same

constexpr std::array<std::string_view, 12> kEndNames = {
    "<|eot_id|>", "<|im_end|>", "<end_of_turn>", "<|end|>",       "<|return|>",      "<|call|>",
    "<|eom_id|>", "<EOT>",      "<|EOT|>",       "<|endoftext|>", "<|end_of_text|>", "<turn|>",
};

uint64_t pair_key(TokenId left, TokenId right) noexcept { return uint64_t{index(left)} << 32 | index(right); }

std::string with_spaces(std::string_view spelling) {
    std::string out;
    for (size_t at = 0; at < spelling.size();) {
        if (spelling.substr(at).starts_with(kSpaceLetter)) {
            out.push_back(' ');
            at += kSpaceLetter.size();
        } else {
            out.push_back(spelling[at++]);
        }
    }
    return out;
}

/// "<0x0A>" → 10.
std::optional<uint8_t> byte_name(std::string_view spelling) {
    if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>') return std::nullopt;
    uint32_t value = 0;
    for (const char c : spelling.substr(3, 2)) {
        const int digit = hex_digit(c);
        if (digit < 0) return std::nullopt;
        value = value * 16 + static_cast<uint32_t>(digit);
    }
    return static_cast<uint8_t>(value);
}

}  // namespace

/// Fills a Vocabulary step by step; each step may refuse.
class VocabularyBuilder {
  public:
    explicit VocabularyBuilder(VocabularyData data) : data_(std::move(data)) {}

    Result<Vocabulary> build() {
        for (auto step : {&VocabularyBuilder::take_model, &VocabularyBuilder::take_tokens, &VocabularyBuilder::take_ids,
                          &VocabularyBuilder::take_merges}) {
            if (Status done = (this->*step)(); !done) return done.error();
        }
        find_byte_tokens();
        find_ends();
        if (made_.model_ == VocabularyModel::sentencepiece) find_space_joiners();
        return std::move(made_);
    }

  private:
    Status take_model();
    Status take_tokens();
    Status take_token(uint32_t id);
    Status take_ids();
    Status take_merges();
    void find_byte_tokens();
    void find_ends();
    void find_space_joiners();
    std::string bytes_of(std::string_view spelling, TokenKind kind) const;
    static Vocabulary::Slice keep(std::vector<char>& pool, std::string_view text);
    void insert_merge(uint64_t key, Vocabulary::Merge merge);

    VocabularyData data_;
    Vocabulary made_;
};

Status VocabularyBuilder::take_model() {
    if (data_.model == "gpt2")
        made_.model_ = VocabularyModel::byte_bpe;
    else if (data_.model == "llama")
        made_.model_ = VocabularyModel::sentencepiece;
    else
        return unsupported(
            fmt::format("tokenizer model \"{}\" is not supported; \"gpt2\" (byte-level BPE) and \"llama\" "
                        "(SentencePiece) are",
                        data_.model),
            "tokenizer.ggml.model");
    made_.pre_ = data_.pre;
    const bool sentencepiece = made_.model_ == VocabularyModel::sentencepiece;
    made_.add_bos_ = data_.add_bos.value_or(sentencepiece || pre_adds_bos(data_.pre));
    made_.add_eos_ = data_.add_eos.value_or(false);
    made_.add_space_prefix_ = sentencepiece && data_.add_space_prefix.value_or(true);
    return Ok{};
}

Vocabulary::Slice VocabularyBuilder::keep(std::vector<char>& pool, std::string_view text) {
    const Vocabulary::Slice slice{static_cast<uint32_t>(pool.size()), static_cast<uint32_t>(text.size())};
    pool.insert(pool.end(), text.begin(), text.end());
    return slice;
}

std::string VocabularyBuilder::bytes_of(std::string_view spelling, TokenKind kind) const {
    if (made_.model_ == VocabularyModel::sentencepiece) {
        if (kind == TokenKind::byte) {
            const auto byte = byte_name(spelling);
            return byte ? std::string(1, static_cast<char>(*byte)) : std::string(spelling);
        }
        return kind == TokenKind::normal ? with_spaces(spelling) : std::string(spelling);
    }
    if (kind == TokenKind::normal || kind == TokenKind::byte) {
        if (auto bytes = unspell(spelling)) return *std::move(bytes);
    }
    return std::string(spelling);  // added tokens are written as they are
}

Status VocabularyBuilder::take_tokens() {
    const size_t n = data_.tokens.size();
    if (n == 0) return bad_input("the vocabulary has no tokens", "tokenizer.ggml.tokens");
    if (n > kTokensMax)
        return bad_input(fmt::format("{} tokens; at most {} are accepted", n, kTokensMax), "tokenizer.ggml.tokens");
    if (made_.model_ == VocabularyModel::sentencepiece && data_.scores.empty())
        return bad_input("a SentencePiece vocabulary needs scores; there are none", "tokenizer.ggml.scores");
    if (!data_.scores.empty() && data_.scores.size() != n)
        return bad_input(fmt::format("{} scores for {} tokens", data_.scores.size(), n), "tokenizer.ggml.scores");
    if (!data_.token_types.empty() && data_.token_types.size() != n)
        return bad_input(fmt::format("{} token types for {} tokens", data_.token_types.size(), n),
                         "tokenizer.ggml.token_type");
    size_t pool_bytes = 0;
    for (const auto& token : data_.tokens) pool_bytes += std::min(token.size(), kTokenBytesMax);
    if (pool_bytes >= 1u << 30) return bad_input("the tokens' text is over 1 GiB", "tokenizer.ggml.tokens");
    made_.spelling_pool_.reserve(pool_bytes);  // views into it are keys below: it must not grow elsewhere
    made_.bytes_pool_.reserve(pool_bytes);
    made_.by_spelling_.reserve(n);
    if (made_.model_ == VocabularyModel::byte_bpe) made_.by_bytes_.reserve(n);
    for (uint32_t id = 0; id < n; id++) {
        if (Status done = take_token(id); !done) return done;
    }
    made_.scores_ = std::move(data_.scores);
    return Ok{};
}

Status VocabularyBuilder::take_token(uint32_t id) {
    const std::string& token = data_.tokens[id];
    if (token.size() > kTokenBytesMax)
        return bad_input(
            fmt::format("token {} has {} bytes; at most {} are accepted", id, token.size(), kTokenBytesMax),
            "tokenizer.ggml.tokens");
    const int32_t type = data_.token_types.empty() ? 1 : data_.token_types[id];
    if (type < 0 || type > 6)
        return bad_input(fmt::format("token {} has type {}; 1 to 6 are known", id, type), "tokenizer.ggml.token_type");
    if (!data_.scores.empty() && !std::isfinite(data_.scores[id]))
        return bad_input(fmt::format("the score of token {} is not a finite number", id), "tokenizer.ggml.scores");
    const TokenKind kind = type == 0 ? TokenKind::normal : static_cast<TokenKind>(type);
    made_.kinds_.push_back(kind);
    made_.spellings_.push_back(keep(made_.spelling_pool_, token));
    made_.bytes_.push_back(keep(made_.bytes_pool_, bytes_of(token, kind)));
    made_.longest_token_bytes_ = std::max(made_.longest_token_bytes_, made_.bytes_.back().size);
    if (!token.empty()) made_.by_spelling_.insert(made_.spelling(TokenId{id}), TokenId{id});
    if (made_.model_ == VocabularyModel::byte_bpe && kind == TokenKind::normal)
        made_.by_bytes_.insert(made_.bytes(TokenId{id}), TokenId{id});
    return Ok{};
}

Status VocabularyBuilder::take_ids() {
    struct Field {
        const char* name;
        std::optional<uint32_t> value;
        std::optional<TokenId>* into;
    };
    std::optional<TokenId> eom;
    const std::array<Field, 6> fields = {{{"bos_token_id", data_.bos, &made_.bos_},
                                          {"eos_token_id", data_.eos, &made_.eos_},
                                          {"eot_token_id", data_.eot, &made_.eot_},
                                          {"eom_token_id", data_.eom, &eom},
                                          {"unknown_token_id", data_.unknown, &made_.unknown_},
                                          {"padding_token_id", data_.padding, &made_.padding_}}};
    for (const Field& field : fields) {
        if (!field.value) continue;
        if (*field.value >= made_.size())
            return bad_input(fmt::format("{} is outside the vocabulary of {} tokens", *field.value, made_.size()),
                             std::string("tokenizer.ggml.") + field.name);
        *field.into = TokenId{*field.value};
    }
    for (const auto& end : {made_.eos_, made_.eot_, eom}) {
        if (end) made_.end_of_generation_.push_back(*end);
    }
    return Ok{};
}

Status VocabularyBuilder::take_merges() {
    if (made_.model_ != VocabularyModel::byte_bpe) return Ok{};
    const size_t n = data_.merges.size();
    if (n > 4 * kTokensMax)
        return bad_input(fmt::format("{} merges; at most {} are accepted", n, 4 * kTokensMax), "tokenizer.ggml.merges");
    size_t slots = 16;
    while (slots < 2 * n) slots *= 2;
    made_.merges_.assign(slots, {kEmptySlot, {0, kNone}});
    std::string whole;
    for (uint32_t rank = 0; rank < n; rank++) {
        const std::string& merge = data_.merges[rank];
        const size_t space = merge.find(' ', 1);  // a left side may itself be a space
        if (merge.empty() || space == std::string::npos || space + 1 == merge.size())
            return bad_input(fmt::format("merge {} is not two tokens with a space between", rank),
                             "tokenizer.ggml.merges");
        const std::string_view left(merge.data(), space), right(merge.data() + space + 1, merge.size() - space - 1);
        whole.assign(left).append(right);
        const auto left_id = made_.find(left), right_id = made_.find(right), made_id = made_.find(whole);
        if (!left_id || !right_id || !made_id)
            return bad_input(fmt::format("merge {} names a token that is not in the vocabulary", rank),
                             "tokenizer.ggml.merges");
        // A merge into a control token would let plain text become one: it is never applied.
        const TokenKind kind = made_.kind(*made_id);
        if (kind == TokenKind::normal || kind == TokenKind::user_defined)
            insert_merge(pair_key(*left_id, *right_id), {rank, *made_id});
    }
    return Ok{};
}

void VocabularyBuilder::insert_merge(uint64_t key, Vocabulary::Merge merge) {
    const size_t mask = made_.merges_.size() - 1;
    for (size_t slot = mix64(key) & mask;; slot = (slot + 1) & mask) {
        auto& entry = made_.merges_[slot];
        if (entry.first == key) return;  // the better rank came first
        if (entry.first == kEmptySlot) {
            entry = {key, merge};
            return;
        }
    }
}

void VocabularyBuilder::find_byte_tokens() {
    made_.byte_tokens_.assign(256, kNone);
    for (uint32_t byte = 0; byte < 256; byte++) {
        std::optional<TokenId> id;
        if (made_.model_ == VocabularyModel::byte_bpe) {
            std::string letter;
            append_utf8(letter, byte_letter(static_cast<uint8_t>(byte)));
            id = made_.find_plain(letter);
        } else {
            id = made_.find(fmt::format("<0x{:02X}>", byte));
            if (id && made_.kind(*id) != TokenKind::byte) id.reset();
        }
        if (id) made_.byte_tokens_[byte] = *id;
    }
}

void VocabularyBuilder::find_ends() {
    auto& ends = made_.end_of_generation_;
    const auto named = [this](std::string_view name) -> std::optional<TokenId> {
        const auto id = made_.find(name);
        const bool fits = id && (made_.is_control(*id) || made_.kind(*id) == TokenKind::user_defined);
        return fits ? id : std::nullopt;
    };
    for (const std::string_view name : kEndNames) {
        if (const auto id = named(name)) ends.push_back(*id);
    }
    // gpt-oss ends a message with <|end|> and goes on with the next one; only these two end its turn.
    if (named("<|return|>") && named("<|call|>")) {
        if (const auto end = named("<|end|>")) std::erase(ends, *end);
    }
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
}

void VocabularyBuilder::find_space_joiners() {
    auto& joiners = made_.space_joiners_;
    for (uint32_t i = 0; i < made_.size(); i++) {
        const std::string_view token = made_.spelling(TokenId{i});
        if (made_.kind(TokenId{i}) != TokenKind::normal && made_.kind(TokenId{i}) != TokenKind::user_defined) continue;
        uint32_t previous = kSpaceCodePoint;
        for (size_t at = 0; at < token.size();) {
            const Utf8Char c = utf8_at(token, at);
            if (c.code_point == kSpaceCodePoint && previous != kSpaceCodePoint) joiners.push_back(previous);
            previous = c.code_point;
            at += c.bytes;
        }
    }
    std::sort(joiners.begin(), joiners.end());
    joiners.erase(std::unique(joiners.begin(), joiners.end()), joiners.end());
}

Result<Vocabulary> Vocabulary::make(VocabularyData data) { return VocabularyBuilder(std::move(data)).build(); }

std::string_view Vocabulary::bytes(TokenId id) const noexcept {
    if (!contains(id)) return {};
    const Slice s = bytes_[index(id)];
    return {bytes_pool_.data() + s.begin, s.size};
}

std::string_view Vocabulary::spelling(TokenId id) const noexcept {
    if (!contains(id)) return {};
    const Slice s = spellings_[index(id)];
    return {spelling_pool_.data() + s.begin, s.size};
}

bool Vocabulary::is_control(TokenId id) const noexcept {
    const TokenKind k = kind(id);
    return contains(id) && (k == TokenKind::control || k == TokenKind::unknown);
}

bool Vocabulary::ends_generation(TokenId id) const noexcept {
    return std::binary_search(end_of_generation_.begin(), end_of_generation_.end(), id);
}

std::optional<TokenId> Vocabulary::find(std::string_view spelling) const noexcept {
    return by_spelling_.find(spelling);
}

std::optional<TokenId> Vocabulary::find_plain(std::string_view spelling) const noexcept {
    const auto id = find(spelling);
    return id && (kind(*id) == TokenKind::normal || kind(*id) == TokenKind::user_defined) ? id : std::nullopt;
}

std::optional<TokenId> Vocabulary::find_word(std::string_view bytes) const noexcept { return by_bytes_.find(bytes); }

std::optional<TokenId> Vocabulary::byte_token(uint8_t byte) const noexcept {
    const TokenId id = byte_tokens_[byte];
    return id == kNone ? std::nullopt : std::optional(id);
}

bool Vocabulary::joins_space(uint32_t code_point) const noexcept {
    return std::binary_search(space_joiners_.begin(), space_joiners_.end(), code_point);
}

const Vocabulary::Merge* Vocabulary::find_merge(TokenId left, TokenId right) const noexcept {
    if (merges_.empty()) return nullptr;
    const uint64_t key = pair_key(left, right);
    const size_t mask = merges_.size() - 1;
    for (size_t slot = mix64(key) & mask;; slot = (slot + 1) & mask) {
        const auto& entry = merges_[slot];
        if (entry.first == key) return &entry.second;
        if (entry.first == kEmptySlot) return nullptr;
    }
}

}  // namespace cadans::text
