// The last finished requests in memory, by id, for those who ask at once.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "history/finished_request.h"

namespace cadans::serve {

/// Keeps the newest `most`. Thread rule: one thread.
class RequestLog {
  public:
    explicit RequestLog(size_t most) : most_(most) {}

    void remember(history::FinishedRequest request) {
        if (most_ == 0) return;
        if (order_.size() == most_) {
            by_id_.erase(order_.front().id);
            order_.pop_front();
        }
        order_.push_back(std::move(request));
        by_id_.insert_or_assign(order_.back().id, &order_.back());
    }

    /// Null when it was never here or is forgotten.
    const history::FinishedRequest* find(std::string_view id) const {
        const auto found = by_id_.find(std::string(id));
        return found == by_id_.end() ? nullptr : found->second;
    }

    /// In the order in which they ended.
    const std::deque<history::FinishedRequest>& all() const noexcept { return order_; }

  private:
    size_t most_;
    std::deque<history::FinishedRequest> order_;  // its elements stay where they are
    std::unordered_map<std::string, const history::FinishedRequest*> by_id_;
};

}  // namespace cadans::serve
