#include "grammar/linker.h"

#include <algorithm>

namespace cadans::grammar {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

/// What is left of edges where some bytes cannot be written.
std::vector<ByteEdge> within(const Alphabet& alphabet, const std::vector<ByteEdge>& edges) {
    std::vector<ByteEdge> out;
    for (const ByteEdge& edge : edges)
        for (unsigned byte = edge.lo; byte <= edge.hi; byte++) {
            if (!alphabet[byte]) continue;
            if (byte > edge.lo && alphabet[byte - 1])
                out.back().hi = static_cast<uint8_t>(byte);
            else
                out.push_back({edge.to, static_cast<uint8_t>(byte), static_cast<uint8_t>(byte)});
        }
    return out;
}

}  // namespace

RuleId Rules::add(std::string name) {
    rules_.push_back({place_ + name, Nfa(limits_.edges)});
    return static_cast<RuleId>(rules_.size() - 1);
}

void Rules::set(RuleId rule, Nfa body) {
    edges_ += body.edges().size();
    states_ += body.size();
    full_ |= body.full() || edges_ > limits_.edges || states_ > limits_.states;
    edges_ = std::min<size_t>(edges_, limits_.edges);
    rules_[rule].body = std::move(body);
}

Result<Grammar> Rules::compile(RuleId root) const { return Linker(*this, root).link(); }

Error Linker::refused(const Built& rule, std::string why) const {
    return bad_input(std::move(why), rules_.rules_[rule.source].name);
}

Result<Grammar> Linker::link() {
    if (Status done = find_nullable(); !done) return done.error();
    if (Status done = build_automata(); !done) return done.error();
    split_accepting_starts();
    find_productive();
    if (!built_[0].good[0])
        return refused(built_[0], rules_.limits().alphabet.all()
                                      ? "no text can satisfy this"
                                      : "no text that this vocabulary can write satisfies this");
    if (Status done = rank_calls(); !done) return done.error();
    return assemble();
}

/// Which rules may be empty. A state is reached when only empty edges and empty rules lie before it; a call whose rule
/// is not known to be empty waits for that rule.
Status Linker::find_nullable() {
    const auto& rules = rules_.rules_;
    nullable_.assign(rules.size(), false);
    if (rules.size() > rules_.limits().rules) return bad_input("this needs more rules than are allowed");
    size_t states = 0, edges = 0;
    std::vector<uint32_t> base;
    for (const auto& rule : rules) {
        base.push_back(static_cast<uint32_t>(states));
        states += rule.body.size();
        edges += rule.body.edges().size();
        if (rule.body.full() || states > rules_.limits().states || edges > rules_.limits().edges)
            return bad_input("this becomes larger than is allowed when it is written out", rule.name);
    }
    struct Way {
        uint32_t to;
        RuleId rule;  // that must be empty, or kNone
    };
    std::vector<std::vector<Way>> ways(states);
    for (RuleId r = 0; r < rules.size(); r++)
        for (const auto& edge : rules[r].body.edges()) {
            if (edge.kind == Nfa::Kind::empty) ways[base[r] + edge.from].push_back({base[r] + edge.to, kNone});
            if (edge.kind == Nfa::Kind::call) ways[base[r] + edge.from].push_back({base[r] + edge.to, edge.rule});
        }
    std::vector<uint32_t> rule_at(states);
    for (RuleId r = 0; r < rules.size(); r++) std::fill_n(rule_at.begin() + base[r], rules[r].body.size(), r);
    std::vector<bool> reached(states);
    std::vector<std::vector<uint32_t>> waiting(rules.size());
    std::vector<uint32_t> work;
    const auto reach = [&](uint32_t state) {
        if (!reached[state]) work.push_back(state);
        reached[state] = true;
    };
    for (RuleId r = 0; r < rules.size(); r++) reach(base[r]);
    while (!work.empty()) {
        const uint32_t state = work.back();
        work.pop_back();
        const RuleId r = rule_at[state];
        if (rules[r].body.accepts(state - base[r]) && !nullable_[r]) {
            nullable_[r] = true;
            for (const uint32_t waiter : waiting[r]) reach(waiter);
        }
        for (const Way& way : ways[state]) {
            if (way.rule == kNone || nullable_[way.rule])
                reach(way.to);
            else
                waiting[way.rule].push_back(way.to);
        }
    }
    return Ok{};
}

/// Automata of the rules that the root can come to.
Status Linker::build_automata() {
    number_.assign(rules_.rules_.size(), kNone);
    const auto visit = [&](RuleId rule) {
        if (number_[rule] != kNone) return;
        number_[rule] = static_cast<uint32_t>(built_.size());
        built_.push_back({});
        built_.back().source = rule;
    };
    visit(root_);
    size_t states = 0, edges = 0;
    for (size_t i = 0; i < built_.size(); i++) {
        const RuleId source = built_[i].source;
        Automaton made = without_empty_edges(rules_.rules_[source].body, nullable_, rules_.limits().edges);
        for (auto& state : made.states) {
            if (!rules_.limits().alphabet.all()) state.bytes = within(rules_.limits().alphabet, state.bytes);
            edges += state.bytes.size() + state.calls.size();
            for (auto& call : state.calls) {
                visit(call.rule);
                call.rule = number_[call.rule];
            }
        }
        states += made.states.size();
        built_[i].automaton = std::move(made);
        if (built_[i].automaton.states.empty() || states > rules_.limits().states || edges > rules_.limits().edges)
            return refused(built_[i], "this becomes larger than is allowed when it is written out");
    }
    return Ok{};
}

void Linker::split_accepting_starts() {
    for (Built& rule : built_) {
        auto& states = rule.automaton.states;
        if (!states[0].accepts) continue;
        rule.start = static_cast<StateId>(states.size());
        states.push_back(states[0]);
        states.back().accepts = false;
    }
}

/// Which states lead to an end: backwards from accepting states; a call waits until its rule is known to end.
void Linker::find_productive() {
    struct Back {
        StateId from;
        uint32_t rule;  // that must be productive, or kNone
    };
    std::vector<std::vector<std::vector<Back>>> back(built_.size());
    std::vector<std::vector<std::pair<uint32_t, StateId>>> waiting(built_.size());
    std::vector<std::pair<uint32_t, StateId>> work;
    const auto reach = [&](uint32_t rule, StateId state) {
        if (built_[rule].good[state]) return;
        built_[rule].good[state] = true;
        work.emplace_back(rule, state);
    };
    for (uint32_t r = 0; r < built_.size(); r++) {
        const auto& states = built_[r].automaton.states;
        built_[r].good.assign(states.size(), false);
        back[r].resize(states.size());
        for (StateId from = 0; from < states.size(); from++) {
            for (const ByteEdge& edge : states[from].bytes) back[r][edge.to].push_back({from, kNone});
            for (const CallEdge& edge : states[from].calls) back[r][edge.to].push_back({from, edge.rule});
        }
    }
    for (uint32_t r = 0; r < built_.size(); r++)
        for (StateId s = 0; s < built_[r].automaton.states.size(); s++)
            if (built_[r].automaton.states[s].accepts) reach(r, s);
    while (!work.empty()) {
        const auto [r, state] = work.back();
        work.pop_back();
        if (state == built_[r].start && !built_[r].productive) {
            built_[r].productive = true;
            for (const auto& [rule, from] : waiting[r]) reach(rule, from);
        }
        for (const Back& edge : back[r][state]) {
            if (edge.rule == kNone || built_[edge.rule].productive)
                reach(r, edge.from);
            else
                waiting[edge.rule].emplace_back(r, edge.from);
        }
    }
    for (Built& rule : built_)
        for (auto& state : rule.automaton.states) {
            std::erase_if(state.bytes, [&](const ByteEdge& e) { return !rule.good[e.to]; });
            std::erase_if(state.calls,
                          [&](const CallEdge& e) { return !rule.good[e.to] || !built_[e.rule].productive; });
        }
}

/// Orders rules so that who calls at its start comes before who is called there; refuses a circle.
Status Linker::rank_calls() {
    std::vector<uint32_t> callers(built_.size());
    const auto at_start = [&](const Built& rule) -> auto& { return rule.automaton.states[rule.start].calls; };
    for (const Built& rule : built_)
        if (rule.productive)
            for (const CallEdge& call : at_start(rule)) callers[call.rule]++;
    std::vector<uint32_t> order;
    for (uint32_t r = 0; r < built_.size(); r++)
        if (callers[r] == 0) order.push_back(r);
    for (size_t i = 0; i < order.size(); i++) {
        built_[order[i]].rank = static_cast<uint32_t>(i);
        if (!built_[order[i]].productive) continue;
        for (const CallEdge& call : at_start(built_[order[i]]))
            if (--callers[call.rule] == 0) order.push_back(call.rule);
    }
    if (order.size() == built_.size()) return Ok{};
    for (uint32_t r = 0; r < built_.size(); r++)
        if (callers[r] != 0)
            return refused(built_[r], "this begins with itself (left recursion), which is not supported");
    return Ok{};
}

Grammar Linker::assemble() {
    Grammar out;
    std::vector<std::vector<StateId>> place(built_.size());
    for (uint32_t r = 0; r < built_.size(); r++) {
        const Built& rule = built_[r];
        const auto first = static_cast<StateId>(out.rule_of_.size());
        place[r].assign(rule.good.size(), kNone);
        // States that the start does not come to any more need no place.
        std::vector<StateId> work = {0, rule.start};
        std::vector<bool> reached(rule.good.size());
        reached[0] = reached[rule.start] = true;
        while (!work.empty()) {
            const StateId at = work.back();
            work.pop_back();
            const auto reach = [&](StateId to) {
                if (!reached[to]) work.push_back(to);
                reached[to] = true;
            };
            for (const ByteEdge& edge : rule.automaton.states[at].bytes) reach(edge.to);
            for (const CallEdge& edge : rule.automaton.states[at].calls) reach(edge.to);
        }
        for (StateId s = 0; s < rule.good.size(); s++)
            if (reached[s] && (rule.good[s] || s == rule.start)) {
                place[r][s] = static_cast<StateId>(out.rule_of_.size());
                out.rule_of_.push_back(r);
            }
        out.rules_.push_back({place[r][rule.start], first, static_cast<StateId>(out.rule_of_.size()) - first, rule.rank,
                              true, rules_.rules_[rule.source].free});
    }
    for (uint32_t r = 0; r < built_.size(); r++)
        for (StateId s = 0; s < place[r].size(); s++) {
            if (place[r][s] == kNone) continue;
            Automaton::State& state = built_[r].automaton.states[s];
            std::sort(state.bytes.begin(), state.bytes.end(),
                      [](const ByteEdge& a, const ByteEdge& b) { return a.lo != b.lo ? a.lo < b.lo : a.to < b.to; });
            out.states_.push_back({static_cast<uint32_t>(out.byte_edges_.size()),
                                   static_cast<uint32_t>(out.call_edges_.size()), state.accepts});
            for (const ByteEdge& edge : state.bytes) out.byte_edges_.push_back({place[r][edge.to], edge.lo, edge.hi});
            for (const CallEdge& edge : state.calls) {
                out.call_edges_.push_back({edge.rule, place[r][edge.to]});
                out.rules_[r].leaf = false;
            }
        }
    out.states_.push_back(
        {static_cast<uint32_t>(out.byte_edges_.size()), static_cast<uint32_t>(out.call_edges_.size()), false});
    out.root_ = place[0][0];
    out.alphabet_ = rules_.limits().alphabet;
    return out;
}

}  // namespace cadans::grammar
