#include "grammar/lark_characters.h"

#include <algorithm>

namespace cadans::grammar {
namespace {

constexpr uint32_t kDepthMax =
    4'000;  // patterns in each other, through terminals made of each other too: a stack's room
constexpr uint32_t kRangesOfAUnit = 16;  // so many ranges are put into a set in the time of one pattern

/// Of a value that a schema describes.
const CodePointSet kJsonBegins = {{'"', '"'}, {'-', '-'}, {'0', '9'}, {'[', '['},
                                  {'f', 'f'}, {'n', 'n'}, {'t', 't'}, {'{', '{'}};

bool is_call(const Pattern& pattern, RuleId rule) {
    return pattern.kind == Pattern::Kind::call && pattern.rule == rule;
}

}  // namespace

const Pattern* LarkCharacters::pattern_of(RuleId rule) const {
    const auto at = patterns_.find(rule);
    return at == patterns_.end() ? nullptr : at->second;
}

/// One pattern deeper, for as long as it lives.
class LarkCharacters::Visit {
  public:
    Visit(LarkCharacters& all, const Pattern& pattern) : all_(all) {
        const size_t units = 1 + pattern.set.ranges().size() / kRangesOfAUnit;
        if (++all_.depth_ > kDepthMax || units > kWorkMax - std::min(all_.work_, kWorkMax))
            all_.work_ = kWorkMax + 1;
        else
            all_.work_ += static_cast<uint32_t>(units);
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    ~Visit() { all_.depth_--; }

    bool lost() const noexcept { return all_.lost(); }

  private:
    LarkCharacters& all_;
};

bool LarkCharacters::add_first(const Pattern& pattern, CodePointSet& out) {
    const Visit visit(*this, pattern);
    if (visit.lost()) return false;
    switch (pattern.kind) {
        case Pattern::Kind::set:
            out.gather(pattern.set);
            return false;
        case Pattern::Kind::sequence:
            return std::ranges::all_of(pattern.parts, [&](const Pattern& part) { return add_first(part, out); });
        case Pattern::Kind::choice: {
            bool empty = false;
            for (const Pattern& part : pattern.parts) empty |= add_first(part, out);
            return empty;
        }
        case Pattern::Kind::repeat: {
            const bool empty = add_first(pattern.parts[0], out);
            return empty || pattern.min == 0;
        }
        case Pattern::Kind::call: {
            const Pattern* inside = pattern_of(pattern.rule);
            if (inside == nullptr) {
                out.gather(kJsonBegins);
                return false;
            }
            return add_first(*inside, out);
        }
        default:
            return true;
    }
}

void LarkCharacters::add_first_of_terminals(const Pattern& pattern, CodePointSet& out) {
    const Visit visit(*this, pattern);
    if (visit.lost()) return;
    const bool terminal =
        pattern.kind == Pattern::Kind::sequence && !pattern.parts.empty() && is_call(pattern.parts[0], mark_);
    if (!terminal) {
        for (const Pattern& part : pattern.parts) add_first_of_terminals(part, out);
        return;
    }
    for (size_t i = 1; i < pattern.parts.size(); i++)
        if (!add_first(pattern.parts[i], out)) return;
}

void LarkCharacters::add_all(const Pattern& pattern, CodePointSet& out) {
    const Visit visit(*this, pattern);
    if (visit.lost()) return;
    if (pattern.kind == Pattern::Kind::set) out.gather(pattern.set);
    for (const Pattern& part : pattern.parts) add_all(part, out);
    if (pattern.kind != Pattern::Kind::call) return;
    if (const Pattern* inside = pattern_of(pattern.rule)) add_all(*inside, out);
}

uint32_t LarkCharacters::longest(const Pattern& pattern) {
    constexpr uint32_t kMore = 2;
    const Visit visit(*this, pattern);
    if (visit.lost()) return kMore;
    uint32_t out = pattern.kind == Pattern::Kind::set ? 1 : 0;
    if (pattern.kind == Pattern::Kind::choice)
        for (const Pattern& part : pattern.parts) out = std::max(out, longest(part));
    if (pattern.kind == Pattern::Kind::sequence)
        for (const Pattern& part : pattern.parts) out += longest(part);
    if (pattern.kind == Pattern::Kind::repeat && pattern.max > 0)
        out = pattern.max > 1 ? kMore * std::min<uint32_t>(1, longest(pattern.parts[0])) : longest(pattern.parts[0]);
    if (pattern.kind == Pattern::Kind::call) {
        const Pattern* inside = pattern_of(pattern.rule);
        out = inside == nullptr ? kMore : longest(*inside);
    }
    return std::min(out, kMore);
}

}  // namespace cadans::grammar
