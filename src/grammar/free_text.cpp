#include "grammar/free_text.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/check.h"

namespace cadans::grammar {
namespace {

constexpr uint8_t kAsciiMost = 0x7F;
constexpr std::string_view kSpaces = " \t\r\n";

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

bool is_ascii(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return static_cast<uint8_t>(c) <= kAsciiMost; });
}

/// How much of the mark stands at the end of `read`.
size_t seen_of(std::string_view mark, std::string_view read) {
    size_t length = std::min(mark.size(), read.size());
    while (!read.ends_with(mark.substr(0, length))) length--;
    return length;
}

}  // namespace

Nfa::State add_text_until(Nfa& nfa, Nfa::State from, std::string_view mark, std::span<const std::string> not_first) {
    check(is_ascii(mark) && std::ranges::all_of(not_first, is_ascii), "marks are ASCII");
    std::vector<Nfa::State> seen;  // so many of the mark's bytes; the last: all
    for (size_t i = 0; i <= mark.size(); i++) seen.push_back(nfa.add());
    Wide wide(nfa, seen[0]);
    /// The edges of one state: `next` says where a byte leads, nothing being nowhere.
    const auto add = [&](Nfa::State at, const std::function<std::optional<Nfa::State>(char)>& next) {
        wide.add(at);
        for (unsigned lo = 0; lo <= kAsciiMost;) {
            const std::optional<Nfa::State> to = next(static_cast<char>(lo));
            unsigned hi = lo;
            while (hi < kAsciiMost && next(static_cast<char>(hi + 1)) == to) hi++;
            if (to) nfa.bytes(at, static_cast<uint8_t>(lo), static_cast<uint8_t>(hi), *to);
            lo = hi + 1;
        }
    };
    for (size_t i = 0; i < mark.size(); i++)
        add(seen[i], [&](char byte) { return seen[seen_of(mark, std::string(mark.substr(0, i)) + byte)]; });
    if (not_first.empty()) {
        nfa.join(from, seen[0]);
        return seen.back();
    }
    // What has been read behind the white space, as long as it could become what the text must not begin with.
    std::map<std::string, Nfa::State> begun = {{"", nfa.add()}};
    for (const std::string& whole : not_first)
        for (size_t i = 1; i < whole.size(); i++)
            if (!begun.contains(whole.substr(0, i))) begun[whole.substr(0, i)] = nfa.add();
    for (const auto& [read, at] : begun)
        add(at, [&](char byte) -> std::optional<Nfa::State> {
            const std::string now = read + byte;
            if (std::ranges::find(not_first, now) != not_first.end()) return std::nullopt;
            const size_t known = seen_of(mark, now);
            if (const auto on = begun.find(now); on != begun.end() && known < mark.size()) return on->second;
            const bool still_space = read.empty() && kSpaces.find(byte) != kSpaces.npos;
            return still_space ? at : seen[known];
        });
    nfa.join(from, begun[""]);
    return seen.back();
}

}  // namespace cadans::grammar
