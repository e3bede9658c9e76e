// The last finished requests, by id, for those who ask afterwards.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace cadans::serve {

/// Keeps the newest `most`. Thread rule: one thread.
class RequestLog {
  public:
    explicit RequestLog(size_t most) : most_(most) {}

    void remember(std::string id, std::string json) {
        if (most_ == 0) return;
        if (order_.size() == most_) {
            by_id_.erase(order_.front());
            order_.pop_front();
        }
        order_.push_back(id);
        by_id_.insert_or_assign(std::move(id), std::move(json));
    }

    /// The `cadans` object; null when it was never here or is forgotten.
    const std::string* find(std::string_view id) const {
        const auto found = by_id_.find(std::string(id));
        return found == by_id_.end() ? nullptr : &found->second;
    }

    size_t size() const noexcept { return order_.size(); }

  private:
    size_t most_;
    std::deque<std::string> order_;
    std::unordered_map<std::string, std::string> by_id_;
};

}  // namespace cadans::serve
