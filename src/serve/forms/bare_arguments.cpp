#include "serve/forms/bare_arguments.h"

#include "grammar/json_text.h"
#include "text/marks.h"

namespace cadans::serve {

namespace {

/// A string's inside as JSON has it.
std::string inside(std::string_view text) {
    const std::string quoted = grammar::json_string(text);
    return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

std::string BareArguments::push(std::string& text) {
    std::string out;
    size_t at = 0;
    while (at < text.size() && !over_) {
        const std::string_view rest = std::string_view(text).substr(at);
        if (state_ == State::text) {
            const size_t end = rest.find(quote_);
            const size_t used = end == rest.npos ? rest.size() - text::possible_beginning(rest, quote_) : end;
            out += inside(rest.substr(0, used));
            at += used;
            if (end == rest.npos) break;
            at += quote_.size();
            out += '"';
            state_ = State::value;
        } else if (state_ == State::value && rest.front() == quote_.front()) {
            if (rest.size() < quote_.size() && std::string_view(quote_).starts_with(rest)) break;
            const bool quoted = rest.starts_with(quote_);
            at += quoted ? quote_.size() : 1;
            if (quoted) out += '"';
            if (quoted) state_ = State::text;
        } else {
            punctuation(rest.front(), out);
            at++;
        }
    }
    text.erase(0, at);
    return out;
}

/// A character that is inside of no text.
void BareArguments::punctuation(char c, std::string& out) {
    const bool space = text::kMarkSpaces.find(c) != text::kMarkSpaces.npos;
    if (state_ == State::name && c == ':') {
        out += grammar::json_string(name_) + ':';
        name_.clear();
        state_ = State::value;
        return;
    }
    if (state_ == State::name && c != '}') {
        if (!space) name_ += c;
        return;
    }
    if (space) return;
    out += c;
    if (c == '{' || c == '[') open_.push_back(c);
    if ((c == '}' || c == ']') && !open_.empty()) open_.pop_back();
    const bool in_object = !open_.empty() && open_.back() == '{';
    state_ = in_object && (c == '{' || c == ',') ? State::name : State::value;
    over_ = open_.empty();
}

}  // namespace cadans::serve
