#include "serve/token_stream.h"

#include "serve/dialects/json_writer.h"

namespace cadans::serve {

namespace {

// Control tokens are hidden, except where the marks of thinking are control tokens themselves.
text::DetokenizerOptions detokenizer_options(const text::Vocabulary& vocabulary, const TokenStreamOptions& options) {
    text::DetokenizerOptions out;
    out.skip_control = !options.shows_control;
    if (!options.reasoning || options.shows_control) return out;
    const std::optional<TokenId> close = vocabulary.find(options.reasoning->close);
    out.skip_control = !options.reasoning->channels && !(close && vocabulary.is_control(*close));
    return out;
}

}  // namespace

TokenStream::TokenStream(const text::Vocabulary& vocabulary, TokenStreamOptions options)
    : detokenizer_(vocabulary, detokenizer_options(vocabulary, options)), stops_(std::move(options.stop)) {
    if (options.reasoning)
        splitter_.emplace(std::move(*options.reasoning), options.starts_inside, options.after_thinking, options.calls);
}

TextDelta TokenStream::push(TokenId id) {
    if (splitter_ && splitter_->in_reasoning()) ++reasoning_tokens_;
    return pass(detokenizer_.push(id));
}

TextDelta TokenStream::finish(bool cut) {
    TextDelta out;
    if (!cut) out = pass(detokenizer_.finish());
    std::string rest = out.stopped ? std::string() : stops_.finish();
    if (!splitter_) {
        out.content += rest;
        return out;
    }
    text::ReasoningOutput last = splitter_->push(rest);
    text::ReasoningOutput end = splitter_->finish();
    out.content += last.content + end.content;
    out.reasoning += last.reasoning + end.reasoning;
    return out;
}

TextDelta TokenStream::pass(std::string_view text) {
    TextDelta out;
    characters_ += count_characters(text);
    if (text.empty()) return out;
    text::StopOutput safe = stops_.push(text);
    out.stopped = safe.stopped;
    out.which = safe.which;
    if (!splitter_) {
        out.content = std::move(safe.text);
        return out;
    }
    text::ReasoningOutput parted = splitter_->push(safe.text);
    out.content = std::move(parted.content);
    out.reasoning = std::move(parted.reasoning);
    return out;
}

uint32_t count_characters(std::string_view text) noexcept {
    uint32_t count = 0;
    for (const char c : text) count += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
    return count;
}

std::string token_name(const text::Vocabulary& vocabulary, TokenId id) {
    constexpr char kHex[] = "0123456789abcdef";
    const std::string_view bytes = vocabulary.bytes(id);
    if (is_utf8(bytes)) return std::string(bytes);
    std::string out = "bytes:";
    for (const char c : bytes) {
        const auto byte = static_cast<uint8_t>(c);
        out += "\\x";
        out += kHex[byte >> 4];
        out += kHex[byte & 15];
    }
    return out;
}

}  // namespace cadans::serve
