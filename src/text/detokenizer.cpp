#include "text/detokenizer.h"

#include "text/utf8.h"

namespace cadans::text {

Detokenizer::Detokenizer(const Vocabulary& vocabulary, DetokenizerOptions options) noexcept
    : vocabulary_(vocabulary), options_(options) {}

std::string Detokenizer::push(TokenId id) {
    if (!vocabulary_.contains(id)) return {};
    const bool control = vocabulary_.is_control(id);
    // Bytes that wait for their character cannot find it beyond a control token.
    if (control) return options_.skip_control ? finish() : finish() + std::string(vocabulary_.bytes(id));
    std::string_view bytes = vocabulary_.bytes(id);
    if (options_.at_start && vocabulary_.add_space_prefix() && bytes.starts_with(' ')) bytes.remove_prefix(1);
    options_.at_start = false;
    pending_.append(bytes);
    const size_t waiting = utf8_unfinished(pending_);
    std::string text = utf8_repaired(std::string_view(pending_).substr(0, pending_.size() - waiting));
    pending_.erase(0, pending_.size() - waiting);
    return text;
}

std::string Detokenizer::finish() {
    std::string text = utf8_repaired(pending_);
    pending_.clear();
    return text;
}

std::string detokenize(const Vocabulary& vocabulary, std::span<const TokenId> ids, DetokenizerOptions options) {
    Detokenizer detokenizer(vocabulary, options);
    std::string text;
    for (const TokenId id : ids) text += detokenizer.push(id);
    return text + detokenizer.finish();
}

}  // namespace cadans::text
