#include "history/kept_rows.h"

#include <algorithm>
#include <utility>

namespace cadans::history {

void KeptRows::load(std::vector<FinishedRequest> oldest_first) {
    rows_ = std::move(oldest_first);
    loaded_ = true;
}

void KeptRows::forget() {
    loaded_ = false;
    rows_ = {};
    chosen_ = {};
}

void KeptRows::add(const FinishedRequest& request) {
    if (!loaded_) return;
    if (++adds_ > kForgottenAfter) return forget();
    std::erase_if(rows_, [&](const FinishedRequest& row) { return row.id == request.id; });
    const auto later = std::ranges::upper_bound(rows_, request.unix_ms, {}, &FinishedRequest::unix_ms);
    rows_.insert(later, request)->record.clear();
}

std::span<const FinishedRequest> KeptRows::of(const Span& span, uint64_t most) {
    adds_ = 0;
    const auto begin = std::ranges::lower_bound(rows_, span.from_ms, {}, &FinishedRequest::unix_ms);
    const auto end = std::ranges::lower_bound(begin, rows_.end(), span.to_ms, {}, &FinishedRequest::unix_ms);
    std::span<const FinishedRequest> inside(begin, std::max(begin, end));
    if (!span.model.empty()) {
        chosen_.clear();
        std::ranges::copy_if(inside, std::back_inserter(chosen_),
                             [&](const FinishedRequest& row) { return row.model == span.model; });
        inside = chosen_;
    }
    return inside.last(std::min<uint64_t>(most, inside.size()));
}

}  // namespace cadans::history
