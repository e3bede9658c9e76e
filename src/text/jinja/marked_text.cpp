#include "text/jinja/marked_text.h"

#include <algorithm>

namespace cadans::text::jinja {

MarkedText::MarkedText(std::string bytes, bool trusted) : bytes_(std::move(bytes)) {
    if (!bytes_.empty()) runs_.push_back({bytes_.size(), trusted});
}

void MarkedText::append(std::string_view bytes, bool trusted) {
    if (bytes.empty()) return;
    bytes_.append(bytes);
    if (!runs_.empty() && runs_.back().trusted == trusted)
        runs_.back().end = bytes_.size();
    else
        runs_.push_back({bytes_.size(), trusted});
}

void MarkedText::append(const MarkedText& other, size_t begin, size_t end) {
    if (begin >= end) return;
    const auto first = std::upper_bound(other.runs_.begin(), other.runs_.end(), begin,
                                        [](size_t at, const Run& run) { return at < run.end; });
    for (auto run = first; run != other.runs_.end() && begin < end; ++run) {
        const size_t stop = std::min(end, run->end);
        append(std::string_view(other.bytes_).substr(begin, stop - begin), run->trusted);
        begin = stop;
    }
}

MarkedText MarkedText::slice(size_t begin, size_t end) const {
    MarkedText part;
    part.append(*this, begin, end);
    return part;
}

bool MarkedText::trusted_at(size_t at) const noexcept {
    const auto run = std::upper_bound(runs_.begin(), runs_.end(), at, [](size_t i, const Run& r) { return i < r.end; });
    return run != runs_.end() && run->trusted;
}

}  // namespace cadans::text::jinja
