// What askers were answered lately, each for himself: an agent's next answer often repeats its last ones.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "base/ids.h"

namespace cadans::draft {

/// Nothing leads from one asker to another: each has answers of his own, and of each model its own. All bounds together
/// are some 1 MB.
///
/// Thread rule: one thread. Cost: of() copies, keep() copies and forgets.
class RecentAnswers {
  public:
    static constexpr size_t kAskers = 64;       ///< those who came last
    static constexpr size_t kAnswers = 16;      ///< of an asker
    static constexpr size_t kTokens = 1 << 12;  ///< of all answers of an asker, what stands between them included

    /// No token: stands behind each answer, so that none goes on into the next.
    static constexpr TokenId kBetween{UINT32_MAX};

    struct Asker {
        ModelId model{};
        uint64_t scope = 0;
        friend auto operator<=>(const Asker&, const Asker&) = default;
    };

    /// The answers of an asker, oldest first, kBetween behind each.
    std::vector<TokenId> of(const Asker& asker);

    /// Of one that is too long, the end is kept.
    void keep(const Asker& asker, std::span<const TokenId> answer);

    size_t askers() const noexcept { return of_.size(); }

  private:
    struct Answers {
        std::deque<std::vector<TokenId>> last;
        size_t tokens = 0;
        uint64_t used = 0;  ///< when, in calls
    };
    std::map<Asker, Answers> of_;
    uint64_t calls_ = 0;
};

}  // namespace cadans::draft
