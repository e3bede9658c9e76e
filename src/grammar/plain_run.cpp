#include "grammar/plain_run.h"

#include <algorithm>
#include <array>

namespace cadans::grammar {
namespace {

constexpr StateId kNone = UINT32_MAX;

struct ByteRange {
    uint8_t lo, hi;
};
/// Plain characters as ranges of bytes, one row a shape.
struct Shape {
    int bytes;
    std::array<ByteRange, 4> ranges;
};
constexpr ByteRange kTail = {0x80, 0xBF};
constexpr std::array kShapes = {
    Shape{1, {{{0x20, 0x21}}}},
    Shape{1, {{{0x23, 0x5B}}}},
    Shape{1, {{{0x5D, 0x7F}}}},
    Shape{2, {{{0xC2, 0xDF}, kTail}}},
    Shape{3, {{{0xE0, 0xE0}, {0xA0, 0xBF}, kTail}}},
    Shape{3, {{{0xE1, 0xEC}, kTail, kTail}}},
    Shape{3, {{{0xED, 0xED}, {0x80, 0x9F}, kTail}}},
    Shape{3, {{{0xEE, 0xEF}, kTail, kTail}}},
    Shape{4, {{{0xF0, 0xF0}, {0x90, 0xBF}, kTail, kTail}}},
    Shape{4, {{{0xF1, 0xF3}, kTail, kTail, kTail}}},
    Shape{4, {{{0xF4, 0xF4}, {0x80, 0x8F}, kTail, kTail}}},
};

bool begins_plain(const ByteEdge& edge) {
    for (const Shape& shape : kShapes)
        if (edge.lo <= shape.ranges[0].hi && shape.ranges[0].lo <= edge.hi) return true;
    return false;
}

}  // namespace

/// Whether every byte that can be written of the range at `position` of a shape leads on, and all of them to one state
/// in the end.
bool PlainRuns::takes(StateId state, int row, int position, StateId& target) const {
    const Shape& shape = kShapes[static_cast<size_t>(row)];
    const ByteRange range = shape.ranges[static_cast<size_t>(position)];
    int covered = 0;
    for (int byte = range.lo; byte <= range.hi; byte++) covered += !grammar_.alphabet()[static_cast<size_t>(byte)];
    for (const ByteEdge& edge : grammar_.bytes_from(state)) {
        if (edge.lo > range.hi || edge.hi < range.lo) continue;
        covered += std::min(edge.hi, range.hi) - std::max(edge.lo, range.lo) + 1;
        if (grammar_.accepts(edge.to)) return false;
        if (position + 1 < shape.bytes) {
            if (!takes(edge.to, row, position + 1, target)) return false;
        } else {
            if (target == kNone) target = edge.to;
            if (target != edge.to) return false;
        }
    }
    // Edges that overlap would count twice; then some other byte may be missing, and no run is claimed.
    return covered == range.hi - range.lo + 1;
}

/// The one state behind any plain character, or kNone.
StateId PlainRuns::next(StateId state) {
    const auto [at, fresh] = next_.try_emplace(state, kNone);
    if (!fresh) return at->second;
    StateId target = kNone;
    bool all = !grammar_.accepts(state);
    // No two edges may overlap, or there would be a second way to go.
    const auto edges = grammar_.bytes_from(state);
    for (size_t i = 1; i < edges.size() && all; i++) all = edges[i - 1].hi < edges[i].lo;
    for (int row = 0; row < static_cast<int>(kShapes.size()) && all; row++) all = takes(state, row, 0, target);
    return next_[state] = all ? target : kNone;
}

PlainRun PlainRuns::from(StateId state, uint32_t most) {
    PlainRun run;
    if (!grammar_.rule_of(state).leaf) return run;
    while (run.characters < most) {
        const StateId to = next(state);
        if (to == kNone) break;
        run.characters++;
        if (to == state) {
            run.characters = most;
            break;
        }
        state = to;
    }
    run.exact = !grammar_.accepts(state);
    for (const ByteEdge& edge : grammar_.bytes_from(state)) run.exact = run.exact && !begins_plain(edge);
    return run;
}

}  // namespace cadans::grammar
