#include "grammar/free_text.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"

namespace cadans::grammar {
namespace {

constexpr uint8_t kAsciiMost = 0x7F;

/// The bytes of characters beyond ASCII, from a state to a state.
class Wide {
  public:
    Wide(Nfa& nfa, Nfa::State to) : nfa_(nfa), one_(nfa.add()), two_(nfa.add()), three_(nfa.add()) {
        nfa.bytes(one_, 0x80, 0xBF, to);
        nfa.bytes(two_, 0x80, 0xBF, one_);
        nfa.bytes(three_, 0x80, 0xBF, two_);
        e0_ = begin(0xA0, 0xBF, one_);
        ed_ = begin(0x80, 0x9F, one_);
        f0_ = begin(0x90, 0xBF, two_);
        f4_ = begin(0x80, 0x8F, two_);
    }
    void add(Nfa::State from) {
        nfa_.bytes(from, 0xC2, 0xDF, one_);
        nfa_.bytes(from, 0xE0, 0xE0, e0_);
        nfa_.bytes(from, 0xE1, 0xEC, two_);
        nfa_.bytes(from, 0xED, 0xED, ed_);
        nfa_.bytes(from, 0xEE, 0xEF, two_);
        nfa_.bytes(from, 0xF0, 0xF0, f0_);
        nfa_.bytes(from, 0xF1, 0xF3, three_);
        nfa_.bytes(from, 0xF4, 0xF4, f4_);
    }

  private:
    Nfa::State begin(uint8_t lo, uint8_t hi, Nfa::State to) {
        const Nfa::State state = nfa_.add();
        nfa_.bytes(state, lo, hi, to);
        return state;
    }

    Nfa& nfa_;
    Nfa::State one_, two_, three_;  // so many bytes are missing
    Nfa::State e0_ = 0, ed_ = 0, f0_ = 0, f4_ = 0;
};

/// How much of the mark stands at the end of `read`.
size_t seen_of(std::string_view mark, std::string_view read) {
    size_t length = std::min(mark.size(), read.size());
    while (!read.ends_with(mark.substr(0, length))) length--;
    return length;
}

}  // namespace

Nfa::State add_text_until(Nfa& nfa, Nfa::State from, std::string_view mark, char not_first) {
    check(!mark.empty() && std::ranges::all_of(mark, [](char c) { return static_cast<uint8_t>(c) <= kAsciiMost; }),
          "a mark is ASCII");
    std::vector<Nfa::State> seen;  // so many of its bytes; the last: all
    for (size_t i = 0; i <= mark.size(); i++) seen.push_back(nfa.add());
    Wide wide(nfa, seen[0]);
    const auto add = [&](Nfa::State at, size_t known, char without) {
        wide.add(at);
        const auto after = [&](unsigned byte) {
            return seen_of(mark, std::string(mark.substr(0, known)) + static_cast<char>(byte));
        };
        for (unsigned lo = 0; lo <= kAsciiMost;) {
            const auto left_out = [&](unsigned byte) { return without != 0 && byte == static_cast<uint8_t>(without); };
            unsigned hi = lo;
            while (hi < kAsciiMost && after(hi + 1) == after(lo) && left_out(hi + 1) == left_out(lo)) hi++;
            if (!left_out(lo)) nfa.bytes(at, static_cast<uint8_t>(lo), static_cast<uint8_t>(hi), seen[after(lo)]);
            lo = hi + 1;
        }
    };
    add(from, 0, not_first);
    for (size_t i = 0; i < mark.size(); i++) add(seen[i], i, 0);
    return seen.back();
}

}  // namespace cadans::grammar
