#include "draft/recent_answers.h"

#include <algorithm>

namespace cadans::draft {

std::vector<TokenId> RecentAnswers::of(const Asker& asker) {
    const auto found = of_.find(asker);
    if (found == of_.end()) return {};
    found->second.used = ++calls_;
    std::vector<TokenId> all;
    all.reserve(found->second.tokens);
    for (const std::vector<TokenId>& answer : found->second.last) {
        all.insert(all.end(), answer.begin(), answer.end());
        all.push_back(kBetween);
    }
    return all;
}

void RecentAnswers::keep(const Asker& asker, std::span<const TokenId> answer) {
    if (answer.empty()) return;
    answer = answer.last(std::min(answer.size(), kTokens - 1));
    Answers& kept = of_[asker];
    kept.used = ++calls_;
    kept.last.emplace_back(answer.begin(), answer.end());
    kept.tokens += answer.size() + 1;
    for (; kept.tokens > kTokens || kept.last.size() > kAnswers; kept.last.pop_front())
        kept.tokens -= kept.last.front().size() + 1;
    if (of_.size() <= kAskers) return;
    of_.erase(std::ranges::min_element(of_, {}, [](const auto& one) { return one.second.used; }));
}

}  // namespace cadans::draft
