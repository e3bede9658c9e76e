// One rule while it is being written: states, edges over bytes, and calls of other rules.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cadans::grammar {

using RuleId = uint32_t;

/// A nondeterministic automaton over bytes whose edges may also be empty, or be the text of another rule.
///
/// Every verb starts at a state and gives the state at its end. State 0 is the start. Growth stops silently at the
/// limit of states and edges: `full()` then says so, and compiling refuses.
///
/// Thread rule: a value
class Nfa {
  public:
    using State = uint32_t;
    enum class Kind : uint8_t { empty, bytes, call };
    struct Edge {
        State from, to;
        RuleId rule;  // of a call
        Kind kind;
        uint8_t lo, hi;  // of bytes
    };

    explicit Nfa(size_t edges_max = 800'000) : edges_max_(edges_max) { add(); }

    State add() {
        if (accepts_.size() < edges_max_)
            accepts_.push_back(false);
        else
            full_ = true;
        return static_cast<State>(accepts_.size() - 1);
    }
    void accept(State at) { accepts_[at] = true; }

    void join(State from, State to) { put({from, to, 0, Kind::empty, 0, 0}); }
    void bytes(State from, uint8_t lo, uint8_t hi, State to) { put({from, to, 0, Kind::bytes, lo, hi}); }
    void call(State from, RuleId rule, State to) { put({from, to, rule, Kind::call, 0, 0}); }

    State bytes(State from, uint8_t lo, uint8_t hi) {
        const State to = add();
        bytes(from, lo, hi, to);
        return to;
    }
    State call(State from, RuleId rule) {
        const State to = add();
        call(from, rule, to);
        return to;
    }
    State literal(State from, std::string_view text) {
        for (const char c : text) from = bytes(from, static_cast<uint8_t>(c), static_cast<uint8_t>(c));
        return from;
    }

    /// `part` written `min` to `max` times, one behind the other; max kEndless: without end.
    static constexpr uint32_t kEndless = UINT32_MAX;
    State repeat(State from, uint32_t min, uint32_t max, const std::function<State(State)>& part);

    size_t size() const noexcept { return accepts_.size(); }
    bool full() const noexcept { return full_; }
    bool accepts(State at) const noexcept { return accepts_[at]; }
    const std::vector<Edge>& edges() const noexcept { return edges_; }

  private:
    void put(const Edge& edge) {
        if (edges_.size() < edges_max_ && accepts_.size() < edges_max_)
            edges_.push_back(edge);
        else
            full_ = true;
    }

    size_t edges_max_;
    std::vector<Edge> edges_;
    std::vector<bool> accepts_;
    bool full_ = false;
};

}  // namespace cadans::grammar
