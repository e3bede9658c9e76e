// How an automaton over characters is written out as edges over bytes.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "grammar/json_text.h"
#include "grammar/text_automaton.h"

namespace cadans::grammar {
namespace {

/// UTF-8 edges that share the states of common tails: the sequences of one state end in the same few ways.
class Utf8Writer {
  public:
    explicit Utf8Writer(Nfa& nfa) : nfa_(nfa) {}

    void add(Nfa::State from, CodePointRange range, Nfa::State to) {
        for (const Sequence& sequence : sequences(range)) lay(sequence, 0, from, to);
    }

  private:
    struct Part {
        uint8_t lo, hi;
        uint32_t tail;  // number of what follows
    };
    using Sequence = std::vector<Part>;

    /// Ranges of bytes that together spell the range of characters; found once for each range.
    const std::vector<Sequence>& sequences(CodePointRange range) {
        const auto [at, fresh] = known_.try_emplace({range.lo, range.hi});
        if (!fresh) return at->second;
        Nfa scratch;
        const Nfa::State end = scratch.add();
        add_utf8(scratch, 0, range, end);
        for (size_t i = 0; i < scratch.edges().size(); i++) {
            if (scratch.edges()[i].from != 0) continue;
            Sequence sequence;  // the splitter branches at the first byte only, and writes a path's edges in a row
            for (size_t k = i;; k++) {
                sequence.push_back({scratch.edges()[k].lo, scratch.edges()[k].hi, 0});
                if (scratch.edges()[k].to == end) break;
            }
            std::string tail;
            for (size_t k = sequence.size(); k-- > 0;) {
                sequence[k].tail = tails_.try_emplace(tail, static_cast<uint32_t>(tails_.size())).first->second;
                tail += {static_cast<char>(sequence[k].lo), static_cast<char>(sequence[k].hi)};
            }
            at->second.push_back(std::move(sequence));
        }
        return at->second;
    }

    void lay(const Sequence& sequence, size_t i, Nfa::State from, Nfa::State to) {
        for (; i + 1 < sequence.size(); i++) {
            const uint64_t key = static_cast<uint64_t>(to) << 32 | sequence[i].tail;
            const auto [next, fresh] = states_.try_emplace(key, 0);
            if (fresh) next->second = nfa_.add();
            nfa_.bytes(from, sequence[i].lo, sequence[i].hi, next->second);
            if (!fresh) return;  // the tail is there already
            from = next->second;
        }
        nfa_.bytes(from, sequence[i].lo, sequence[i].hi, to);
    }

    Nfa& nfa_;
    std::map<std::pair<uint32_t, uint32_t>, std::vector<Sequence>> known_;
    std::map<std::string, uint32_t> tails_;
    std::unordered_map<uint64_t, Nfa::State> states_;
};

/// The escapes of one state, with one edge for the \ that they share.
class EscapeWriter {
  public:
    EscapeWriter(Nfa& nfa, Nfa::State from) : nfa_(nfa), from_(from) {}

    void any(Nfa::State to) { add_json_escape(nfa_, backslash(), to); }
    void one(uint8_t c, Nfa::State to) {
        const std::string text = json_escape(c);
        const Nfa::State before = nfa_.literal(backslash(), std::string_view(text).substr(1, text.size() - 2));
        nfa_.bytes(before, static_cast<uint8_t>(text.back()), static_cast<uint8_t>(text.back()), to);
    }

  private:
    Nfa::State backslash() {
        if (backslash_ == 0) backslash_ = nfa_.bytes(from_, '\\', '\\');
        return backslash_;
    }
    Nfa& nfa_;
    Nfa::State from_, backslash_ = 0;
};

}  // namespace

Nfa::State TextAutomaton::add_raw(Nfa& nfa, Nfa::State from) const {
    std::vector<Nfa::State> at;
    for (size_t i = 0; i < states_.size(); i++) at.push_back(nfa.add());
    const Nfa::State end = nfa.add();
    nfa.join(from, at[0]);
    Utf8Writer writer(nfa);
    for (size_t i = 0; i < states_.size(); i++) {
        for (const Edge& edge : states_[i].edges) writer.add(at[i], {edge.lo, edge.hi}, at[edge.to]);
        if (states_[i].accepts) nfa.join(at[i], end);
    }
    return end;
}

Nfa::State TextAutomaton::add_json_string(Nfa& nfa, Nfa::State from) const {
    std::vector<Nfa::State> at;
    for (size_t i = 0; i < states_.size(); i++) at.push_back(nfa.add());
    const Nfa::State end = nfa.add();
    nfa.bytes(from, '"', '"', at[0]);
    Utf8Writer writer(nfa);
    for (size_t i = 0; i < states_.size() && !nfa.full(); i++) {
        const auto& edges = states_[i].edges;
        if (states_[i].accepts) nfa.bytes(at[i], '"', '"', end);
        EscapeWriter escapes(nfa, at[i]);
        if (edges.size() == 1 && edges[0].lo == 0 && edges[0].hi == kCodePointMax) escapes.any(at[edges[0].to]);
        for (const Edge& edge : edges) {
            const auto plain = [&](uint32_t lo, uint32_t hi) {
                lo = std::max(lo, edge.lo), hi = std::min(hi, edge.hi);
                if (lo <= hi) writer.add(at[i], {lo, hi}, at[edge.to]);
            };
            plain(0x20, 0x21);
            plain(0x23, 0x5B);
            plain(0x5D, kCodePointMax);
            if (edge.lo == 0 && edge.hi == kCodePointMax) continue;
            for (const uint8_t c : kJsonEscaped)
                if (c >= edge.lo && c <= edge.hi) escapes.one(c, at[edge.to]);
        }
    }
    return end;
}

}  // namespace cadans::grammar
