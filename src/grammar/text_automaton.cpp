#include "grammar/text_automaton.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/check.h"

namespace cadans::grammar {
namespace {

Error too_many(const Limits& limits) {
    return bad_input(fmt::format("the pattern needs more than {} states", limits.pattern_states));
}

/// A pattern as a nondeterministic automaton over characters, whose empty edges may ask for an end of the text.
class CharacterNfa {
  public:
    enum class When : uint8_t { always, at_begin, at_end };
    using Subset = std::vector<uint32_t>;

    explicit CharacterNfa(size_t states_max) : states_max_(states_max) {}

    uint32_t add() {
        if (states_.size() < states_max_) states_.emplace_back();
        return static_cast<uint32_t>(states_.size() - 1);
    }
    void join(uint32_t from, uint32_t to, When when = When::always) { states_[from].empty.push_back({to, when}); }
    void edge(uint32_t from, const CodePointSet& set, uint32_t to) { states_[from].sets.push_back({&set, to}); }
    bool full() const { return states_.size() >= states_max_; }

    uint32_t add(const Pattern& pattern, uint32_t from) {
        uint32_t to = from;
        if (full()) return from;
        switch (pattern.kind) {
            case Pattern::Kind::set:
                edge(from, pattern.set, to = add());
                break;
            case Pattern::Kind::sequence:
                for (const Pattern& part : pattern.parts) to = add(part, to);
                break;
            case Pattern::Kind::choice:
                to = add();
                for (const Pattern& part : pattern.parts) join(add(part, from), to);
                break;
            case Pattern::Kind::repeat:
                to = repeat(pattern, from);
                break;
            case Pattern::Kind::begin:
                join(from, to = add(), When::at_begin);
                break;
            case Pattern::Kind::end:
                join(from, to = add(), When::at_end);
                break;
            case Pattern::Kind::call:
                break;  // regular expressions have none
        }
        return to;
    }

    void close(Subset& subset, bool begin, bool end) const {
        std::vector<bool> seen(states_.size());
        for (const uint32_t state : subset) seen[state] = true;
        for (size_t i = 0; i < subset.size(); i++)
            for (const auto& [to, when] : states_[subset[i]].empty)
                if (!seen[to] &&
                    (when == When::always || (when == When::at_begin && begin) || (when == When::at_end && end))) {
                    seen[to] = true;
                    subset.push_back(to);
                }
        std::sort(subset.begin(), subset.end());
    }

    struct State {
        std::vector<std::pair<uint32_t, When>> empty;
        std::vector<std::pair<const CodePointSet*, uint32_t>> sets;
    };
    const State& state(uint32_t at) const { return states_[at]; }

  private:
    uint32_t repeat(const Pattern& pattern, uint32_t from) {
        for (uint32_t i = 0; i < pattern.min && !full(); i++) from = add(pattern.parts[0], from);
        if (pattern.max == Nfa::kEndless) {
            const uint32_t loop = add();
            join(from, loop);
            join(add(pattern.parts[0], loop), loop);
            return loop;
        }
        const uint32_t end = add();
        for (uint32_t i = pattern.min; i < pattern.max && !full(); i++) {
            join(from, end);
            from = add(pattern.parts[0], from);
        }
        join(from, end);
        return end;
    }

    size_t states_max_;
    std::vector<State> states_;
};

const CodePointSet kAll = {{0, kCodePointMax}};

}  // namespace

Result<TextAutomaton> TextAutomaton::of(const Pattern& pattern, bool search, const Limits& limits) {
    CharacterNfa nfa(size_t{limits.pattern_states} * 8);
    const uint32_t start = nfa.add();
    if (search) nfa.edge(start, kAll, start);
    uint32_t last = nfa.add(pattern, start);
    const uint32_t accepting = nfa.add();
    nfa.join(last, accepting);
    if (search) nfa.edge(accepting, kAll, accepting);
    if (nfa.full()) return too_many(limits);

    TextAutomaton out;
    std::map<CharacterNfa::Subset, uint32_t> ids;
    std::vector<CharacterNfa::Subset> order;
    const auto id_of = [&](CharacterNfa::Subset subset, bool begin) {
        nfa.close(subset, begin, false);
        // A match that is complete stays complete: all such states are one.
        if (search && std::binary_search(subset.begin(), subset.end(), accepting)) subset = {accepting};
        const auto [at, fresh] = ids.try_emplace(subset, static_cast<uint32_t>(order.size()));
        if (fresh) {
            out.states_.emplace_back();
            auto ended = subset;
            nfa.close(ended, begin, true);
            out.states_.back().accepts = std::binary_search(ended.begin(), ended.end(), accepting);
            order.push_back(std::move(subset));
        }
        return at->second;
    };
    id_of({start}, true);
    // Only the very first state is at the beginning: it must not be met again by a subset that looks the same.
    ids.clear();
    size_t work = 0;
    for (size_t i = 0; i < order.size(); i++) {
        std::vector<std::pair<CodePointRange, uint32_t>> ways;
        std::vector<uint32_t> cuts;
        for (const uint32_t state : order[i])
            for (const auto& [set, to] : nfa.state(state).sets)
                for (const CodePointRange range : set->ranges()) {
                    ways.push_back({range, to});
                    cuts.push_back(range.lo);
                    cuts.push_back(range.hi + 1);
                }
        std::sort(cuts.begin(), cuts.end());
        cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
        work += order[i].size() + cuts.size() * ways.size() / 16;
        if (order.size() > limits.pattern_states || work > size_t{limits.pattern_states} * 200) return too_many(limits);
        for (size_t k = 0; k + 1 < cuts.size(); k++) {
            CharacterNfa::Subset to;
            for (const auto& [range, target] : ways)
                if (range.lo <= cuts[k] && cuts[k] <= range.hi) to.push_back(target);
            if (to.empty()) continue;
            std::sort(to.begin(), to.end());
            to.erase(std::unique(to.begin(), to.end()), to.end());
            const uint32_t target = id_of(std::move(to), false);
            auto& edges = out.states_[i].edges;
            if (!edges.empty() && edges.back().to == target && edges.back().hi + 1 == cuts[k])
                edges.back().hi = cuts[k + 1] - 1;
            else
                edges.push_back({cuts[k], cuts[k + 1] - 1, target});
        }
    }
    return out;
}

TextAutomaton TextAutomaton::anything() {
    TextAutomaton out;
    out.states_.push_back({{{0, kCodePointMax, 0}}, true});
    return out;
}

TextAutomaton TextAutomaton::lengths(uint32_t min, uint32_t max) {
    TextAutomaton out;
    const uint32_t last = max == Nfa::kEndless ? min : max;
    for (uint32_t n = 0; n <= last; n++) {
        out.states_.push_back({{}, n >= min});
        if (n < last) out.states_.back().edges.push_back({0, kCodePointMax, n + 1});
    }
    if (max == Nfa::kEndless) out.states_.back().edges.push_back({0, kCodePointMax, last});
    return out;
}

TextAutomaton TextAutomaton::words(std::span<const std::string> words) {
    std::vector<std::map<uint32_t, uint32_t>> next(1);
    std::vector<bool> ends(1);
    for (std::string_view word : words) {
        uint32_t at = 0;
        while (!word.empty()) {
            const int64_t c = take_character(word);
            if (c < 0) continue;
            const auto [edge, fresh] =
                next[at].try_emplace(static_cast<uint32_t>(c), static_cast<uint32_t>(next.size()));
            at = edge->second;
            if (fresh) {
                next.emplace_back();
                ends.push_back(false);
            }
        }
        ends[at] = true;
    }
    TextAutomaton out;
    for (size_t i = 0; i < next.size(); i++) {
        out.states_.push_back({{}, ends[i]});
        for (const auto& [c, to] : next[i]) out.states_.back().edges.push_back({c, c, to});
    }
    return out;
}

Result<TextAutomaton> TextAutomaton::intersection(const TextAutomaton& a, const TextAutomaton& b,
                                                  const Limits& limits) {
    TextAutomaton out;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> ids;
    std::vector<std::pair<uint32_t, uint32_t>> order;
    const auto id_of = [&](uint32_t x, uint32_t y) {
        const auto [at, fresh] = ids.try_emplace({x, y}, static_cast<uint32_t>(order.size()));
        if (fresh) {
            order.emplace_back(x, y);
            out.states_.push_back({{}, a.states_[x].accepts && b.states_[y].accepts});
        }
        return at->second;
    };
    id_of(0, 0);
    const size_t most = std::max<size_t>({limits.pattern_states, a.size() + 1, b.size() + 1});
    for (size_t i = 0; i < order.size(); i++) {
        if (order.size() > most) return too_many(limits);
        const auto& left = a.states_[order[i].first].edges;
        const auto& right = b.states_[order[i].second].edges;
        for (size_t x = 0, y = 0; x < left.size() && y < right.size();) {
            const uint32_t lo = std::max(left[x].lo, right[y].lo), hi = std::min(left[x].hi, right[y].hi);
            if (lo <= hi) {
                const uint32_t to = id_of(left[x].to, right[y].to);
                out.states_[i].edges.push_back({lo, hi, to});
            }
            if (left[x].hi < right[y].hi)
                x++;
            else
                y++;
        }
    }
    return out;
}

TextAutomaton TextAutomaton::without(std::string_view word) {
    std::string pattern;
    for (const char c : word) pattern += {'[', c, ']'};
    const auto read = read_regex(pattern);
    check(read.has_value(), "a mark is a pattern");
    const auto found = of(*read, true, Limits{});
    check(found.has_value(), "a mark has few states");
    return found->complement();
}

TextAutomaton TextAutomaton::bare_names() {
    const auto read = read_regex("[A-Za-z0-9_.$\\-\\u0080-\\u{10FFFF}]+");
    check(read.has_value(), "names are a pattern");
    const auto all = of(*read, false, Limits{});
    check(all.has_value(), "names have few states");
    return *all;
}

TextAutomaton TextAutomaton::complement() const {
    TextAutomaton out = *this;
    const auto sink = static_cast<uint32_t>(out.states_.size());
    out.states_.emplace_back();
    for (State& state : out.states_) {
        std::vector<Edge> edges;
        uint32_t next = 0;
        for (const Edge& edge : state.edges) {
            if (edge.lo > next) edges.push_back({next, edge.lo - 1, sink});
            edges.push_back(edge);
            next = edge.hi + 1;
        }
        if (next <= kCodePointMax) edges.push_back({next, kCodePointMax, sink});
        state.edges = std::move(edges);
        state.accepts = !state.accepts;
    }
    return out;
}

bool TextAutomaton::empty() const {
    std::vector<uint32_t> work = {0};
    std::vector<bool> seen(states_.size());
    seen[0] = true;
    while (!work.empty()) {
        const State& state = states_[work.back()];
        work.pop_back();
        if (state.accepts) return false;
        for (const Edge& edge : state.edges) {
            if (seen[edge.to] || (edge.lo >= 0xD800 && edge.hi <= 0xDFFF)) continue;
            seen[edge.to] = true;
            work.push_back(edge.to);
        }
    }
    return true;
}

bool TextAutomaton::accepts(std::string_view text) const {
    uint32_t at = 0;
    while (!text.empty()) {
        const int64_t c = take_character(text);
        const auto& edges = states_[at].edges;
        const auto edge = std::find_if(edges.begin(), edges.end(), [&](const Edge& e) { return c <= int64_t{e.hi}; });
        if (c < 0 || edge == edges.end() || edge->lo > static_cast<uint32_t>(c)) return false;
        at = edge->to;
    }
    return states_[at].accepts;
}

}  // namespace cadans::grammar
