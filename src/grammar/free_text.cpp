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

/// The longest end of `read` with which one of the words begins.
std::string seen_of(const std::vector<std::string>& words, std::string_view read) {
    for (size_t from = 0; from < read.size(); from++) {
        const std::string_view end = read.substr(from);
        if (std::ranges::any_of(words, [&](const std::string& word) { return word.starts_with(end); }))
            return std::string(end);
    }
    return {};
}

}  // namespace

Nfa::State add_text_until(Nfa& nfa, Nfa::State from, std::string_view mark, const Forbidden& forbidden) {
    const std::vector<std::string>& not_first = forbidden.first;
    check(
        is_ascii(mark) && std::ranges::all_of(not_first, is_ascii) && std::ranges::all_of(forbidden.anywhere, is_ascii),
        "marks are ASCII");
    std::vector<std::string> words = forbidden.anywhere;
    words.emplace_back(mark);
    // What stands at the end of the text and could become one of the words.
    std::map<std::string, Nfa::State> seen = {{"", nfa.add()}};
    for (const std::string& word : words)
        for (size_t i = 1; i < word.size(); i++)
            if (!seen.contains(word.substr(0, i))) seen[word.substr(0, i)] = nfa.add();
    const Nfa::State end = nfa.add();
    /// Where the text leads once it ends in `read`; nothing: it may not.
    const auto behind = [&](const std::string& read) -> std::optional<Nfa::State> {
        const std::string known = seen_of(words, read);
        if (known == mark) return end;
        const auto at = seen.find(known);
        return at == seen.end() ? std::nullopt : std::optional(at->second);
    };
    Wide wide(nfa, seen[""]);
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
    for (const auto& [read, at] : seen) add(at, [&](char byte) { return behind(read + byte); });
    if (not_first.empty()) {
        nfa.join(from, seen[""]);
        return end;
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
            const std::optional<Nfa::State> on = behind(now);
            if (!on) return on;
            if (const auto first = begun.find(now); first != begun.end() && on != end) return first->second;
            const bool still_space = read.empty() && kSpaces.find(byte) != kSpaces.npos;
            return still_space ? std::optional(at) : on;
        });
    nfa.join(from, begun[""]);
    return end;
}

}  // namespace cadans::grammar
