#include "grammar/determinize.h"

#include <algorithm>
#include <bitset>
#include <map>

namespace cadans::grammar {
namespace {

using State = Nfa::State;
using Subset = std::vector<State>;

constexpr size_t kWorkMax = 1'000'000;  // states and edges looked at; tens of milliseconds

/// The edges of an Nfa by the state they leave.
class EdgeIndex {
  public:
    explicit EdgeIndex(const Nfa& nfa) : begin_(nfa.size() + 1) {
        for (const auto& edge : nfa.edges()) begin_[edge.from + 1]++;
        for (size_t i = 1; i < begin_.size(); i++) begin_[i] += begin_[i - 1];
        edges_.resize(nfa.edges().size());
        auto next = begin_;
        for (const auto& edge : nfa.edges()) edges_[next[edge.from]++] = edge;
    }
    std::span<const Nfa::Edge> from(State state) const {
        return {edges_.data() + begin_[state], begin_[state + 1] - begin_[state]};
    }

  private:
    std::vector<uint32_t> begin_;
    std::vector<Nfa::Edge> edges_;
};

class Builder {
  public:
    Builder(const Nfa& nfa, const std::vector<bool>& nullable, size_t edges_max)
        : nfa_(nfa), nullable_(nullable), index_(nfa), edges_max_(edges_max), seen_(nfa.size()) {}

    Automaton build() {
        if (plain()) return copied();
        if (Automaton made = subsets(); !made.states.empty()) return made;
        return closures();
    }

  private:
    bool passes(const Nfa::Edge& edge) const {
        return edge.kind == Nfa::Kind::empty || (edge.kind == Nfa::Kind::call && nullable_[edge.rule]);
    }

    bool plain() const {
        for (State state = 0; state < nfa_.size(); state++) {
            std::bitset<256> taken;
            for (const auto& edge : index_.from(state)) {
                if (passes(edge)) return false;
                if (edge.kind != Nfa::Kind::bytes) continue;
                for (unsigned byte = edge.lo; byte <= edge.hi; byte++) {
                    if (taken[byte]) return false;
                    taken.set(byte);
                }
            }
        }
        return true;
    }

    Automaton copied() const {
        Automaton out;
        out.states.resize(nfa_.size());
        for (State state = 0; state < nfa_.size(); state++) {
            out.states[state].accepts = nfa_.accepts(state);
            for (const auto& edge : index_.from(state)) put(out.states[state], edge);
        }
        return out;
    }

    static void put(Automaton::State& state, const Nfa::Edge& edge) {
        if (edge.kind == Nfa::Kind::bytes) state.bytes.push_back({edge.to, edge.lo, edge.hi});
        if (edge.kind == Nfa::Kind::call) state.calls.push_back({edge.rule, edge.to});
    }

    /// All states reached by empty edges, ascending.
    void close(Subset& subset) {
        stamp_++;
        for (const State state : subset) seen_[state] = stamp_;
        for (size_t i = 0; i < subset.size(); i++)
            for (const auto& edge : index_.from(subset[i]))
                if (passes(edge) && seen_[edge.to] != stamp_) {
                    seen_[edge.to] = stamp_;
                    subset.push_back(edge.to);
                }
        std::sort(subset.begin(), subset.end());
        work_ += subset.size();
    }

    Automaton subsets() {
        const size_t states_max = 256 + 3 * nfa_.size();
        const size_t work_max = std::min<size_t>(4'096 + 24 * nfa_.edges().size(), kWorkMax);
        std::map<Subset, StateId> ids;
        std::vector<const Subset*> order;
        Automaton out;
        const auto id_of = [&](Subset subset) {
            close(subset);
            const auto [at, fresh] = ids.try_emplace(std::move(subset), static_cast<StateId>(order.size()));
            if (fresh) {
                order.push_back(&at->first);
                out.states.emplace_back();
            }
            return at->second;
        };
        id_of({0});
        std::vector<Nfa::Edge> byte_edges;
        std::map<RuleId, Subset> calls;
        for (size_t i = 0; i < order.size(); i++) {
            if (order.size() > states_max || work_ > work_max) return {};
            byte_edges.clear();
            calls.clear();
            for (const State state : *order[i]) {
                if (nfa_.accepts(state)) out.states[i].accepts = true;
                for (const auto& edge : index_.from(state)) {
                    if (edge.kind == Nfa::Kind::bytes) byte_edges.push_back(edge);
                    if (edge.kind == Nfa::Kind::call) calls[edge.rule].push_back(edge.to);
                }
            }
            std::bitset<257> cuts;
            for (const auto& edge : byte_edges) cuts.set(edge.lo).set(edge.hi + 1U);
            for (unsigned lo = 0; lo < 256;) {
                unsigned hi = lo + 1;
                while (hi < 256 && !cuts[hi]) hi++;
                Subset to;
                for (const auto& edge : byte_edges)
                    if (edge.lo <= lo && lo <= edge.hi) to.push_back(edge.to);
                work_ += byte_edges.size() / 8;
                if (!to.empty()) {
                    std::sort(to.begin(), to.end());
                    to.erase(std::unique(to.begin(), to.end()), to.end());
                    const StateId target = id_of(std::move(to));
                    auto& bytes = out.states[i].bytes;
                    if (!bytes.empty() && bytes.back().to == target && bytes.back().hi + 1U == lo)
                        bytes.back().hi = static_cast<uint8_t>(hi - 1);
                    else
                        bytes.push_back({target, static_cast<uint8_t>(lo), static_cast<uint8_t>(hi - 1)});
                }
                lo = hi;
            }
            for (auto& [rule, to] : calls) {
                std::sort(to.begin(), to.end());
                to.erase(std::unique(to.begin(), to.end()), to.end());
                const StateId target = id_of(std::move(to));
                out.states[i].calls.push_back({rule, target});
            }
        }
        return out;
    }

    Automaton closures() {
        Automaton out;
        out.states.resize(nfa_.size());
        size_t edges = 0;
        for (State state = 0; state < nfa_.size(); state++) {
            Subset subset = {state};
            close(subset);
            for (const State reached : subset) {
                if (nfa_.accepts(reached)) out.states[state].accepts = true;
                for (const auto& edge : index_.from(reached)) put(out.states[state], edge);
            }
            edges += out.states[state].bytes.size() + out.states[state].calls.size();
            if (edges > edges_max_) return {};
        }
        return out;
    }

    const Nfa& nfa_;
    const std::vector<bool>& nullable_;
    EdgeIndex index_;
    size_t edges_max_;
    std::vector<uint32_t> seen_;
    uint32_t stamp_ = 0;
    size_t work_ = 0;
};

}  // namespace

Automaton without_empty_edges(const Nfa& nfa, const std::vector<bool>& nullable, size_t edges_max) {
    return Builder(nfa, nullable, edges_max).build();
}

}  // namespace cadans::grammar
