#include "grammar/stacks.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/check.h"

namespace cadans::grammar {
namespace {

constexpr int kJoinDepth = 200;   // below it, equal states keep two entries: the same set, spelled longer
constexpr size_t kTableFrom = 5;  // steps from which a table pays
constexpr uint32_t kNoTable = UINT32_MAX;

uint64_t mix(uint64_t h, uint64_t value) {
    h = (h ^ value) * 0x9E3779B97F4A7C15ULL;
    return h ^ (h >> 29);
}

uint64_t hash_of(std::span<const Stacks::Frame> frames, bool bottom) {
    uint64_t h = bottom ? 77 : 5;
    for (const auto& frame : frames) h = mix(h, (static_cast<uint64_t>(frame.state) << 32) | frame.below);
    return mix(h, frames.size());
}

}  // namespace

Stacks::Stacks(const Grammar& grammar, size_t bytes_max)
    : grammar_(grammar), bytes_max_(bytes_max), slots_(1024, kDead) {
    sets_.emplace_back();  // kDead
    sets_.back().filled = true;
    std::vector<Frame> none;
    check(intern(none, true) == kBottom, "the empty stack is the second set");
    sets_.emplace_back();  // kLost
    steps_.push_back({kLost, 0, 255});
    lose(kLost);
}

StackId Stacks::start() { return of(grammar_.root()); }

StackId Stacks::of(StateId state) {
    std::vector<Frame> frames = {{state, kBottom}};
    return intern(frames, false);
}

std::span<const Stacks::Frame> Stacks::frames(StackId id) const noexcept {
    return {frames_.data() + sets_[id].first, sets_[id].count};
}

bool Stacks::free(StackId id) const noexcept {
    const auto all = frames(id);
    return std::any_of(all.begin(), all.end(), [this](const Frame& frame) { return grammar_.free(frame.state); });
}

StackId Stacks::intern(std::vector<Frame>& frames, bool bottom) {
    if (frames.empty() && !bottom) return kDead;
    size_t at = hash_of(frames, bottom) & (slots_.size() - 1);
    for (; slots_[at] != kDead; at = (at + 1) & (slots_.size() - 1)) {
        const Set& set = sets_[slots_[at]];
        if (set.bottom == bottom && set.count == frames.size() &&
            std::equal(frames.begin(), frames.end(), frames_.begin() + set.first,
                       [](const Frame& a, const Frame& b) { return a.state == b.state && a.below == b.below; }))
            return slots_[at];
    }
    if (bytes() >= bytes_max_ || frames_.size() + frames.size() > UINT32_MAX / 2) return kLost;
    const auto id = static_cast<StackId>(sets_.size());
    Set set;
    set.first = static_cast<uint32_t>(frames_.size());
    set.count = static_cast<uint32_t>(frames.size());
    set.bottom = bottom;
    // In this order: where memory runs out, no set is half there.
    frames_.insert(frames_.end(), frames.begin(), frames.end());
    sets_.push_back(set);
    slots_[at] = id;
    if (sets_.size() * 2 > slots_.size()) {
        std::vector<StackId> wider(slots_.size() * 2, kDead);
        for (StackId s = 1; s < sets_.size(); s++) {
            if (s == kLost) continue;
            size_t to = hash_of(this->frames(s), sets_[s].bottom) & (wider.size() - 1);
            while (wider[to] != kDead) to = (to + 1) & (wider.size() - 1);
            wider[to] = s;
        }
        slots_ = std::move(wider);
    }
    return id;
}

/// Frames with one state become one frame on the union of what was below them.
StackId Stacks::join(std::vector<Frame> frames, bool bottom, int depth) {
    const auto order = [](const Frame& a, const Frame& b) {
        return a.state != b.state ? a.state < b.state : a.below < b.below;
    };
    const auto same = [](const Frame& a, const Frame& b) { return a.state == b.state && a.below == b.below; };
    std::sort(frames.begin(), frames.end(), order);
    frames.erase(std::unique(frames.begin(), frames.end(), same), frames.end());
    if (depth < kJoinDepth) {
        size_t kept = 0;
        for (size_t i = 0; i < frames.size();) {
            size_t end = i + 1;
            while (end < frames.size() && frames[end].state == frames[i].state) end++;
            Frame frame = frames[i];
            if (end - i > 1) {
                std::vector<Frame> below;
                bool below_bottom = false;
                for (size_t k = i; k < end; k++) {
                    below_bottom |= sets_[frames[k].below].bottom;
                    const auto part = this->frames(frames[k].below);
                    below.insert(below.end(), part.begin(), part.end());
                }
                frame.below = join(std::move(below), below_bottom, depth + 1);
                if (frame.below == kLost) return kLost;
            }
            frames[kept++] = frame;
            i = end;
        }
        frames.resize(kept);
    }
    return intern(frames, bottom);
}

/// The tops of a set and everything that they return to without another byte.
bool Stacks::pop_ends(StackId id, std::vector<Head>& heads, bool& ends) {
    std::vector<StackId> work = {id};
    sets_[id].seen = ++round_;
    while (!work.empty()) {
        const StackId at = work.back();
        work.pop_back();
        ends |= sets_[at].bottom;
        for (const Frame& frame : frames(at)) {
            heads.push_back({frame.state, frame.below});
            if (grammar_.accepts(frame.state) && sets_[frame.below].seen != round_) {
                sets_[frame.below].seen = round_;
                work.push_back(frame.below);
            }
        }
        if (heads.size() > kHeadsMax) return false;
    }
    return true;
}

/// Adds the starts of all rules that the heads call. Callers come before who they call (by rank), so that a rule is
/// entered once, with all who wait for it below it.
bool Stacks::push_calls(std::vector<Head>& heads) {
    struct Waiting {
        std::vector<Frame> frames;
        bool bottom = false;
    };
    std::map<std::pair<uint32_t, RuleId>, Waiting> waiting;
    const auto call_from = [&](Head head) {
        for (const CallEdge& call : grammar_.calls_from(head.state)) {
            Waiting& at = waiting[{grammar_.rules()[call.rule].rank, call.rule}];
            if (grammar_.only_accepts(call.to)) {  // nothing is left to do there: its caller waits instead
                const auto below = frames(head.below);
                at.frames.insert(at.frames.end(), below.begin(), below.end());
                at.bottom |= sets_[head.below].bottom;
            } else {
                at.frames.push_back({call.to, head.below});
            }
        }
    };
    for (size_t i = 0, own = heads.size(); i < own; i++) call_from(heads[i]);
    while (!waiting.empty()) {
        const RuleId rule = waiting.begin()->first.second;
        Waiting at = std::move(waiting.begin()->second);
        waiting.erase(waiting.begin());
        const Head head = {grammar_.rules()[rule].start, join(std::move(at.frames), at.bottom)};
        if (head.below == kLost) return false;
        heads.push_back(head);
        call_from(head);
        if (heads.size() > kHeadsMax) return false;
    }
    return true;
}

/// Every byte leads from it to kLost, by the step that kLost has itself.
void Stacks::lose(StackId id) noexcept {
    Set& set = sets_[id];
    set.filled = set.lost = true;
    set.first_step = 0;
    set.step_count = 1;
}

void Stacks::fill(StackId id) {
    std::vector<Head> heads;
    bool ends = false;
    if (bytes() >= bytes_max_ || !pop_ends(id, heads, ends) || !push_calls(heads)) return lose(id);

    struct Way {
        ByteEdge edge;
        StackId below;
    };
    std::vector<Way> ways;
    std::array<bool, 257> cuts{};
    for (const Head& head : heads)
        for (const ByteEdge& edge : grammar_.bytes_from(head.state)) {
            ways.push_back({edge, head.below});
            cuts[edge.lo] = cuts[edge.hi + 1U] = true;
        }
    std::vector<Step> made;
    std::vector<Frame> to;
    for (unsigned lo = 0; lo < 256;) {
        unsigned hi = lo + 1;
        while (hi < 256 && !cuts[hi]) hi++;
        to.clear();
        for (const Way& way : ways)
            if (way.edge.lo <= lo && lo <= way.edge.hi) to.push_back({way.edge.to, way.below});
        if (!to.empty()) {
            const StackId target = to.size() == 1 ? intern(to, false) : join(to, false);
            if (target != kDead) {
                if (!made.empty() && made.back().to == target && made.back().hi + 1U == lo)
                    made.back().hi = static_cast<uint8_t>(hi - 1);
                else
                    made.push_back({target, static_cast<uint8_t>(lo), static_cast<uint8_t>(hi - 1)});
            }
        }
        lo = hi;
    }
    Set& set = sets_[id];
    set.first_step = static_cast<uint32_t>(steps_.size());
    set.step_count = static_cast<uint32_t>(made.size());
    steps_.insert(steps_.end(), made.begin(), made.end());
    if (made.size() >= kTableFrom) {
        const auto table = static_cast<uint32_t>(tables_.size() / 256);
        tables_.resize(tables_.size() + 256, kDead);
        StackId* row = tables_.data() + tables_.size() - 256;
        for (const Step& step : made) std::fill(row + step.lo, row + step.hi + 1, step.to);
        set.table = table;
    }
    set.ends = ends;
    set.filled = true;  // last: where memory runs out, nothing is half there
}

bool Stacks::lost(StackId id) {
    if (!sets_[id].filled) fill(id);
    return sets_[id].lost;
}

bool Stacks::ends(StackId id) {
    if (!sets_[id].filled) fill(id);
    return sets_[id].ends;
}

std::span<const Stacks::Step> Stacks::steps(StackId id) {
    if (!sets_[id].filled) fill(id);
    return {steps_.data() + sets_[id].first_step, sets_[id].step_count};
}

StackId Stacks::step(StackId id, uint8_t byte) {
    if (!sets_[id].filled) fill(id);
    const Set& set = sets_[id];
    if (set.table != kNoTable) return tables_[set.table * size_t{256} + byte];
    for (const Step& step : std::span(steps_.data() + set.first_step, set.step_count))
        if (byte <= step.hi) return byte >= step.lo ? step.to : kDead;
    return kDead;
}

size_t Stacks::bytes() const noexcept {
    return sets_.capacity() * sizeof(Set) + frames_.capacity() * sizeof(Frame) + steps_.capacity() * sizeof(Step) +
           (tables_.capacity() + slots_.capacity()) * sizeof(StackId);
}

void Stacks::check_invariants() const {
    for (StackId id = 1; id < sets_.size(); id++) {
        if (id == kLost) continue;
        const auto own = frames(id);
        check(!own.empty() || sets_[id].bottom, "a set of stacks holds one");
        for (size_t i = 0; i < own.size(); i++) {
            check(own[i].below != kDead && own[i].below != kLost && own[i].below < id,
                  "what lies below was stored before");
            check(own[i].state < grammar_.states(), "a frame names a state of the grammar");
            check(i == 0 || own[i - 1].state < own[i].state ||
                      (own[i - 1].state == own[i].state && own[i - 1].below < own[i].below),
                  "frames ascend");
        }
        if (!sets_[id].filled) continue;
        const std::span<const Step> steps(steps_.data() + sets_[id].first_step, sets_[id].step_count);
        for (size_t i = 0; i < steps.size(); i++) {
            check(steps[i].lo <= steps[i].hi && (i == 0 || steps[i - 1].hi < steps[i].lo), "steps ascend");
            check(steps[i].to != kDead, "no step is dead");
        }
    }
}

}  // namespace cadans::grammar
