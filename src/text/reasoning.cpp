#include "text/reasoning.h"

#include <algorithm>
#include <array>
#include <utility>

#include "text/marks.h"

namespace cadans::text {
namespace {

constexpr std::array<std::string_view, 4> kTagNames = {"think", "thinking", "reasoning", "seed:think"};

// Gemma 4.
constexpr const char *kChannelOpen = "<|channel>thought", *kChannelClose = "<channel|>";

// gpt-oss: every message is <|start|>role<|channel|>name<|message|>text, ended by one of these.
constexpr std::string_view kMessage = "<|message|>", kChannel = "<|channel|>", kAnalysis = "<|channel|>analysis";
constexpr std::string_view kFinal = "<|channel|>final", kReceiver = " to=functions.";
constexpr std::array<std::string_view, 5> kMessageEnds = {"<|end|>", "<|return|>", "<|call|>", "<|start|>",
                                                          "<|channel|>"};

}  // namespace

std::optional<ReasoningStyle> reasoning_style_of(std::string_view source) {
    if (source.find("<|channel|>") != source.npos && source.find("analysis") != source.npos)
        return ReasoningStyle{{}, {}, true};
    if (source.find(kChannelClose) != source.npos) return ReasoningStyle{kChannelOpen, kChannelClose, false};
    for (const std::string_view name : kTagNames) {
        ReasoningStyle style{"<" + std::string(name) + ">", "</" + std::string(name) + ">", false};
        if (source.find(style.close) != source.npos) return style;
    }
    return std::nullopt;
}

bool opens_reasoning(std::string_view prompt, const ReasoningStyle& style) {
    if (style.channels) return prompt.ends_with("<|channel|>analysis<|message|>");
    prompt.remove_suffix(trailing_spaces(prompt));
    return prompt.ends_with(style.open);
}

ReasoningSplitter::ReasoningSplitter(ReasoningStyle style, bool starts_inside, AfterThinking after, bool shows_calls)
    : style_(std::move(style)), after_(after), shows_calls_(shows_calls) {
    state_ = starts_inside ? State::inside : style_.channels ? State::content : State::before;
    analysis_ = starts_inside;
}

bool ReasoningSplitter::in_reasoning() const noexcept { return style_.channels ? analysis_ : state_ == State::inside; }

ReasoningOutput ReasoningSplitter::push(std::string_view piece) {
    ReasoningOutput out;
    held_ += piece;
    while (step(out, false)) {
    }
    return out;
}

ReasoningOutput ReasoningSplitter::finish() {
    ReasoningOutput out;
    while (step(out, true)) {
    }
    return out;
}

bool ReasoningSplitter::step(ReasoningOutput& out, bool last) {
    return style_.channels ? step_channels(out, last) : step_tags(out, last);
}

void ReasoningSplitter::emit(ReasoningOutput& out, std::string_view text) {
    (in_reasoning() ? out.reasoning : out.content) += text;
}

/// One move of the state machine over what is held; false when more text is needed.
bool ReasoningSplitter::step_tags(ReasoningOutput& out, bool last) {
    switch (state_) {
        case State::before: {
            const size_t first = std::min(held_.find_first_not_of(kMarkSpaces), held_.size());
            const std::string_view rest = std::string_view(held_).substr(first);
            if (rest.starts_with(style_.open)) {
                held_.erase(0, first + style_.open.size());
                state_ = State::inside;
                return true;
            }
            if (!last && std::string_view(style_.open).starts_with(rest)) return false;
            state_ = State::content;  // no block: the white space in front is the answer's own
            return true;
        }
        case State::inside: {
            if (!started_) held_.erase(0, std::min(held_.find_first_not_of(kMarkSpaces), held_.size()));
            const size_t close = held_.find(style_.close);
            std::string_view text = std::string_view(held_).substr(0, std::min(close, held_.size()));
            if (close == held_.npos && !last) text.remove_suffix(possible_beginning(held_, style_.close));
            // White space in front of what may be the end of the block waits with it.
            text.remove_suffix(trailing_spaces(text));
            started_ = started_ || !text.empty();
            emit(out, text);
            const size_t used = text.size();
            if (close == held_.npos) {
                held_.erase(0, last ? held_.size() : used);
                return false;
            }
            held_.erase(0, close + style_.close.size());
            state_ = State::after_block;
            return true;
        }
        case State::after_block: {
            if (after_ == AfterThinking::spaced_form) {
                state_ = State::content;
                return true;
            }
            const size_t first = held_.find_first_not_of(kMarkSpaces);
            held_.erase(0, std::min(first, held_.size()));
            if (first == held_.npos) return false;
            state_ = State::content;
            return true;
        }
        default: {
            emit(out, held_);
            held_.clear();
            return false;
        }
    }
}

bool ReasoningSplitter::step_header(ReasoningOutput& out, bool last) {
    const size_t message = held_.find(kMessage);
    if (message == held_.npos) {
        if (last) held_.clear();
        return false;
    }
    const std::string_view header = std::string_view(held_).substr(0, message + kMessage.size());
    const size_t channel = header.rfind(kChannel);
    analysis_ = header.find(kAnalysis) != header.npos;
    state_ = State::content;
    if (shows_calls_ && channel != header.npos && header.find(kReceiver, channel) != header.npos) {
        out.content += header.substr(channel);
        analysis_ = false;
        state_ = State::last;
    } else if (after_ != AfterThinking::words && header.find(kFinal) != header.npos) {
        state_ = State::last;
    }
    held_.erase(0, message + kMessage.size());
    return true;
}

bool ReasoningSplitter::step_channels(ReasoningOutput& out, bool last) {
    if (state_ == State::header) return step_header(out, last);
    if (state_ == State::last) {
        out.content += std::exchange(held_, {});
        return false;
    }
    size_t end = held_.npos, end_bytes = 0, waiting = 0;
    for (const std::string_view mark : kMessageEnds) {
        const size_t found = held_.find(mark);
        // The mark of a header that follows belongs to that header.
        if (found < end) {
            end = found;
            end_bytes = mark == "<|start|>" || mark == "<|channel|>" ? 0 : mark.size();
        }
        waiting = std::max(waiting, possible_beginning(held_, mark));
    }
    if (end == held_.npos) {
        const size_t ready = held_.size() - (last ? 0 : waiting);
        emit(out, std::string_view(held_).substr(0, ready));
        held_.erase(0, ready);
        return false;
    }
    emit(out, std::string_view(held_).substr(0, end));
    held_.erase(0, end + end_bytes);
    state_ = end_bytes == 0 ? State::header : State::content;
    return true;
}

}  // namespace cadans::text
