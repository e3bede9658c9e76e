// Which characters terminals of a Lark grammar begin with and are made of.
#pragma once

#include <cstdint>
#include <map>

#include "grammar/pattern.h"

namespace cadans::grammar {

/// Sets may be larger than they are in truth, never smaller; they are gathered, tidy() is due before they are used.
/// Thread rule: one thread; borrows what is defined.
class LarkCharacters {
  public:
    /// terminal_mark  the rule whose call stands in front of each terminal in a rule
    explicit LarkCharacters(RuleId terminal_mark) : mark_(terminal_mark) {}

    void define(RuleId rule, const Pattern& pattern) { patterns_[rule] = &pattern; }

    /// Adds what any terminal in this rule begins with.
    void add_first_of_terminals(const Pattern& pattern, CodePointSet& out);
    /// Adds every character that it may hold.
    void add_all(const Pattern& pattern, CodePointSet& out);
    /// Characters of its longest text; 2: or more.
    uint32_t longest(const Pattern& pattern);

    bool lost() const noexcept { return work_ > kWorkMax; }  ///< there was too much to look at: nothing above holds

  private:
    /// Adds what it begins with; true when it may be empty.
    bool add_first(const Pattern& pattern, CodePointSet& out);
    const Pattern* pattern_of(RuleId rule) const;
    class Visit;

    static constexpr uint32_t kWorkMax = 200'000;

    RuleId mark_;
    std::map<RuleId, const Pattern*> patterns_;
    uint32_t work_ = 0;
    uint32_t depth_ = 0;
};

}  // namespace cadans::grammar
