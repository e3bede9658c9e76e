#include "text/stop_strings.h"

#include <algorithm>

namespace cadans::text {

StopStrings::StopStrings(std::vector<std::string> stops) {
    for (size_t place = 0; place < stops.size(); place++) {
        if (stops[place].empty()) continue;
        Pattern pattern{std::move(stops[place]), {}, 0, place};
        // fallback[k]: the longest proper prefix of the first k bytes that is also their end.
        pattern.fallback.assign(pattern.text.size() + 1, 0);
        for (uint32_t k = 1, length = 0; k < pattern.text.size(); k++) {
            while (length > 0 && pattern.text[k] != pattern.text[length]) length = pattern.fallback[length];
            if (pattern.text[k] == pattern.text[length]) length++;
            pattern.fallback[k + 1] = length;
        }
        patterns_.push_back(std::move(pattern));
    }
}

StopOutput StopStrings::push(std::string_view piece) {
    StopOutput out;
    for (size_t at = 0; at < piece.size() && !stopped_; at++) {
        const char byte = piece[at];
        held_.push_back(byte);
        size_t longest = 0;
        const Pattern* winner = nullptr;
        for (Pattern& pattern : patterns_) {
            while (pattern.matched > 0 && pattern.text[pattern.matched] != byte)
                pattern.matched = pattern.fallback[pattern.matched];
            if (pattern.text[pattern.matched] == byte) pattern.matched++;
            longest = std::max(longest, pattern.matched);
            const bool complete = pattern.matched == pattern.text.size();
            if (complete && (winner == nullptr || pattern.text.size() > winner->text.size())) winner = &pattern;
        }
        if (winner != nullptr) {
            stopped_ = out.stopped = true;
            out.which = winner->place;
            out.text.append(held_, 0, held_.size() - winner->text.size());
            held_.clear();
        } else if (held_.size() > longest) {
            out.text.append(held_, 0, held_.size() - longest);
            held_.erase(0, held_.size() - longest);
        }
    }
    return out;
}

std::string StopStrings::finish() {
    std::string rest;
    if (!stopped_) rest.swap(held_);
    for (Pattern& pattern : patterns_) pattern.matched = 0;
    return rest;
}

}  // namespace cadans::text
