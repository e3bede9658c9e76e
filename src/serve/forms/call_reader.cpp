#include "serve/forms/call_reader.h"

#include <algorithm>
#include <utility>

#include "text/marks.h"

namespace cadans::serve {

namespace {

/// The place behind `"key"`, a colon and white space; npos where not all of it has come.
size_t behind_key(std::string_view text, std::string_view key, size_t from) {
    const std::string quoted = '"' + std::string(key) + '"';
    const size_t at = text.find(quoted, from);
    if (at == text.npos) return at;
    const size_t colon = text.find(':', at + quoted.size());
    return colon == text.npos ? colon : text.find_first_not_of(text::kMarkSpaces, colon + 1);
}

}  // namespace

ReadText CallReader::push(std::string_view piece) {
    ReadText out;
    held_ += piece;
    while (step(out)) {
    }
    return out;
}

ReadText CallReader::finish() {
    ReadText out;
    if (state_ == State::begin || state_ == State::text) out.content = std::move(held_);
    held_.clear();
    return out;
}

/// One move over what is held; false when more text is needed.
bool CallReader::step(ReadText& out) {
    switch (state_) {
        case State::begin:
            return step_begin();
        case State::text:
            return step_text(out);
        case State::form:
            out.content += std::exchange(held_, {});
            return false;
        case State::head:
            return step_head(out);
        case State::arguments:
            return step_arguments(out);
        default:
            return step_behind();
    }
}

bool CallReader::step_begin() {
    const size_t first = held_.find_first_not_of(text::kMarkSpaces);
    if (first == held_.npos) return false;
    const std::string_view rest = std::string_view(held_).substr(first), mark = mark_of(style_);
    if (text_has_form_ && rest.size() < mark.size() && mark.starts_with(rest)) return false;
    // A bare object is a call; text of such a model begins with another character.
    if (style_ == CallStyle::bare && rest.front() == '{')
        state_ = State::head;
    else
        state_ = text_has_form_ && !rest.starts_with(mark) ? State::form : State::text;
    return true;
}

bool CallReader::step_text(ReadText& out) {
    const std::string_view mark = mark_of(style_);
    const size_t found = held_.find(mark);
    std::string_view words = std::string_view(held_).substr(0, std::min(found, held_.size()));
    if (found == held_.npos) words.remove_suffix(text::possible_beginning(held_, mark));
    words.remove_suffix(text::trailing_spaces(words));  // what comes next says whose they are
    const size_t used = words.size();
    out.content += words;
    if (found == held_.npos) {
        held_.erase(0, used);
        return false;
    }
    held_.erase(0, found + mark.size());
    state_ = State::head;
    return true;
}

bool CallReader::step_head(ReadText& out) {
    CallPiece piece{.index = calls_, .arguments = {}, .first = true};
    size_t begin = held_.npos;
    if (style_ == CallStyle::named) {
        constexpr std::string_view kArguments = "[ARGS]";
        const size_t end = held_.find(kArguments);
        if (end == held_.npos) return false;
        piece.name = held_.substr(0, end);
        begin = end + kArguments.size();
    } else if (style_ == CallStyle::channel) {
        constexpr std::string_view kMessage = "<|message|>";
        const size_t end = held_.find(kMessage);
        if (end == held_.npos) return false;
        piece.name = held_.substr(0, held_.find_first_of(" <"));
        begin = end + kMessage.size();
    } else if (const BareMarks* marks = bare_marks(style_)) {
        constexpr std::string_view kCall = "call:";
        const size_t name = held_.find(kCall), end = held_.find('{');
        if (end == held_.npos) return false;
        if (name < end) piece.name = held_.substr(name + kCall.size(), end - name - kCall.size());
        begin = end;
        bare_.emplace(marks->quote);
    } else {
        const size_t name = behind_key(held_, "name", 0);
        const size_t end = name == held_.npos ? name : held_.find('"', name + 1);
        if (end == held_.npos) return false;
        begin = behind_key(held_, arguments_key(style_), end + 1);
        if (begin == held_.npos) return false;
        piece.name = held_.substr(name + 1, end - name - 1);
    }
    held_.erase(0, begin);
    calls_++;
    depth_ = 0;
    in_string_ = escaped_ = false;
    out.calls.push_back(std::move(piece));
    state_ = State::arguments;
    return true;
}

void CallReader::add_arguments(ReadText& out, std::string_view piece, bool last) {
    if (piece.empty() && !last) return;
    if (out.calls.empty() || out.calls.back().index != calls_ - 1)
        out.calls.push_back({.index = calls_ - 1, .arguments = {}});
    out.calls.back().arguments += piece;
    out.calls.back().last = last;
}

bool CallReader::step_arguments(ReadText& out) {
    if (bare_) {
        const std::string json = bare_->push(held_);
        const bool ended = bare_->over();
        add_arguments(out, json, ended);
        if (ended) state_ = State::behind;
        return ended;
    }
    size_t end = 0;
    bool over = false;
    for (; end < held_.size() && !over; end++) {
        const char c = held_[end];
        if (escaped_)
            escaped_ = false;
        else if (in_string_ && c == '\\')
            escaped_ = true;
        else if (c == '"')
            in_string_ = !in_string_;
        else if (!in_string_ && (c == '{' || c == '['))
            depth_++;
        else if (!in_string_ && (c == '}' || c == ']')) {
            over = depth_ <= 1;
            if (depth_ == 0) break;  // it closes what stands around the arguments, which were no object
            depth_--;
        }
    }
    add_arguments(out, std::string_view(held_).substr(0, end), over);
    held_.erase(0, end);
    if (over) state_ = State::behind;
    return over;
}

/// The next call begins at the next mark, or, in a list, at the next object.
bool CallReader::step_behind() {
    const std::string_view mark = style_ == CallStyle::listed ? std::string_view("{") : mark_of(style_);
    const size_t found = held_.find(mark);
    if (found == held_.npos) {
        held_.erase(0, held_.size() - text::possible_beginning(held_, mark));
        return false;
    }
    held_.erase(0, found + mark.size());
    state_ = State::head;
    return true;
}

}  // namespace cadans::serve
