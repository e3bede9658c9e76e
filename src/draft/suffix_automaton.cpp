#include "draft/suffix_automaton.h"

#include <bit>

#include "base/random.h"

namespace cadans::draft {
namespace {

/// Shorter endings than so many steps up the links are not told what followed: there a longer one decides.
constexpr uint32_t kTold = 8;

}  // namespace

// An automaton of n tokens has at most 2n states and 3n edges.
SuffixAutomaton::SuffixAutomaton(uint32_t tokens_most)
    : tokens_most_(tokens_most), buckets_(std::bit_ceil(size_t{3} * tokens_most + 1), kNone) {
    states_.reserve(size_t{2} * tokens_most + 2);
    edges_.reserve(size_t{3} * tokens_most + 3);
    states_.push_back({});
}

uint32_t SuffixAutomaton::bucket(StateId from, uint32_t token) const noexcept {
    return static_cast<uint32_t>(mix64(uint64_t{from} << 32 | token) & (buckets_.size() - 1));
}

uint32_t SuffixAutomaton::find(StateId from, uint32_t token) const noexcept {
    uint32_t at = buckets_[bucket(from, token)];
    while (at != kNone && (edges_[at].from != from || edges_[at].token != token)) at = edges_[at].chained;
    return at;
}

void SuffixAutomaton::connect(StateId from, uint32_t token, StateId to) {
    uint32_t& head = buckets_[bucket(from, token)];
    const auto edge = static_cast<uint32_t>(edges_.size());
    edges_.push_back({from, to, token, states_[from].edges, head});
    head = states_[from].edges = edge;
}

void SuffixAutomaton::read(TokenId token) {
    note(index(token));
    if (tokens_read_ < tokens_most_) {
        append(index(token));
        match_ = states_[last_].link;
        match_length_ = states_[match_].length;
    } else {
        follow(index(token));
    }
    tokens_read_++;
}

/// Tells the present endings, longest first, what followed.
void SuffixAutomaton::note(uint32_t token) noexcept {
    StateId at = tokens_read_ < tokens_most_ ? last_ : match_;
    for (uint32_t told = 0; told < kTold && at != kNone && at != kRoot; told++, at = states_[at].link) {
        State& state = states_[at];
        if (state.lead > 0 && state.next == token) {
            state.lead++;
        } else if (state.lead > 1) {
            state.lead--;
        } else {
            state.next = token;
            state.lead = 1;
        }
    }
}

void SuffixAutomaton::append(uint32_t token) {
    const auto now = static_cast<StateId>(states_.size());
    states_.push_back({.length = states_[last_].length + 1});
    StateId at = last_;
    uint32_t edge = kNone;
    for (; at != kNone && (edge = find(at, token)) == kNone; at = states_[at].link) connect(at, token, now);
    if (at == kNone) {
        states_[now].link = kRoot;
    } else {
        const StateId there = edges_[edge].to;
        const bool whole = states_[there].length == states_[at].length + 1;
        const StateId link = whole ? there : split(at, there);
        for (; !whole && at != kNone; at = states_[at].link) {
            edge = find(at, token);
            if (edge == kNone || edges_[edge].to != there) break;
            edges_[edge].to = link;
        }
        if (!whole) states_[there].link = link;
        states_[now].link = link;
    }
    last_ = now;
}

/// A state for those endings of `to` that come from `from` and shorter ones: they now stand in one place more.
SuffixAutomaton::StateId SuffixAutomaton::split(StateId from, StateId to) {
    const auto half = static_cast<StateId>(states_.size());
    states_.push_back(states_[to]);
    states_[half].length = states_[from].length + 1;
    states_[half].edges = kNone;
    for (uint32_t edge = states_[to].edges; edge != kNone; edge = edges_[edge].sibling)
        connect(half, edges_[edge].token, edges_[edge].to);
    return half;
}

/// The longest ending that stands somewhere in what is remembered.
void SuffixAutomaton::follow(uint32_t token) noexcept {
    uint32_t edge = kNone;
    while ((edge = find(match_, token)) == kNone && match_ != kRoot) {
        match_ = states_[match_].link;
        match_length_ = states_[match_].length;
    }
    if (edge == kNone) return;
    match_ = edges_[edge].to;
    match_length_++;
}

Guess SuffixAutomaton::guess(std::span<TokenId> out) const noexcept {
    if (match_length_ == 0) return {};
    uint32_t written = 0, match = match_length_;
    StateId at = match_;
    while (written < out.size()) {
        // Nothing is known to follow the very end: what followed its longest ending elsewhere does.
        while (at != kRoot && states_[at].lead == 0) at = states_[at].link;
        if (at == kRoot) break;
        const uint32_t next = states_[at].next;
        const uint32_t edge = find(at, next);
        if (edge == kNone) break;
        if (written == 0 && at != match_) match = states_[at].length;
        out[written++] = TokenId{next};
        at = edges_[edge].to;
    }
    return {written, written == 0 ? 0 : match};
}

}  // namespace cadans::draft
