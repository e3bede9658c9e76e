// The reader of regular expressions.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/hex.h"
#include "grammar/pattern.h"

namespace cadans::grammar {
namespace {

constexpr uint32_t kRepeatsMax = 100'000;

const CodePointSet kDigits = {{'0', '9'}};
const CodePointSet kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const CodePointSet kSpace = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
                             {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
// Of Python's \s and other libraries': what all of them have, and what only some have.
const CodePointSet kSureSpace = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},
                                 {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029},
                                 {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
const CodePointSet kDoubtfulSpace = {{0x1C, 0x1F}, {0x85, 0x85}, {0xFEFF, 0xFEFF}};
const CodePointSet kAscii = {{0, 0x7F}};
const CodePointSet kLineEnds = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

class Reader {
  public:
    Reader(std::string_view source, const Limits& limits, RegexFlags flags)
        : whole_(source), rest_(source), limits_(limits), flags_(flags) {}

    Result<Pattern> read() {
        if (whole_.size() > limits_.source_bytes) return refuse("the pattern is too long");
        auto pattern = choice(0);
        if (pattern && !rest_.empty()) return refuse("a ) without its (");
        return pattern;
    }

  private:
    Error refuse(std::string why) const {
        return bad_input(std::move(why), fmt::format("at byte {} of the pattern", whole_.size() - rest_.size()));
    }
    Error cannot(std::string why) const {
        return unsupported(std::move(why), fmt::format("at byte {} of the pattern", whole_.size() - rest_.size()));
    }
    bool skip(std::string_view text) {
        if (!rest_.starts_with(text)) return false;
        rest_.remove_prefix(text.size());
        return true;
    }

    Result<Pattern> choice(uint32_t depth) {
        if (depth > limits_.depth) return refuse(fmt::format("groups are nested deeper than {}", limits_.depth));
        Pattern out;
        out.kind = Pattern::Kind::choice;
        do {
            auto part = sequence(depth);
            if (!part) return part;
            out.parts.push_back(*std::move(part));
        } while (skip("|"));
        if (out.parts.size() == 1) return Pattern(std::move(out.parts[0]));
        return out;
    }

    Result<Pattern> sequence(uint32_t depth) {
        Pattern out;
        while (!rest_.empty() && rest_[0] != '|' && rest_[0] != ')') {
            auto part = term(depth);
            if (!part) return part;
            out.parts.push_back(*std::move(part));
        }
        return out;
    }

    Result<Pattern> term(uint32_t depth) {
        if (skip("^")) return anchored({.kind = Pattern::Kind::begin});
        if (skip("$")) return anchored({.kind = Pattern::Kind::end});
        auto part = atom(depth);
        if (!part) return part;
        uint32_t min = 1, max = 1;
        if (skip("*"))
            min = 0, max = Nfa::kEndless;
        else if (skip("+"))
            max = Nfa::kEndless;
        else if (skip("?"))
            min = 0;
        else if (rest_.starts_with("{")) {
            if (Status done = counts(min, max); !done) return done.error();
        } else
            return part;
        skip("?");  // lazy: the same texts
        if (quantifier_follows()) return refuse("a repeat of a repeat");
        return Pattern::repeated(*std::move(part), min, max);
    }

    Result<Pattern> anchored(Pattern anchor) {
        if (flags_.python) return cannot("^ and $ are not supported here: a terminal is matched as a whole");
        if (quantifier_follows()) return refuse("nothing to repeat");
        return anchor;
    }
    bool quantifier_follows() const {
        return !rest_.empty() && (rest_[0] == '*' || rest_[0] == '+' || rest_[0] == '?' || rest_[0] == '{');
    }

    std::optional<uint32_t> number() {
        size_t digits = 0;
        uint64_t value = 0;
        for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; digits++)
            value = std::min<uint64_t>(value * 10 + static_cast<uint64_t>(rest_[digits] - '0'), UINT32_MAX);
        if (digits == 0) return std::nullopt;
        rest_.remove_prefix(digits);
        return static_cast<uint32_t>(value);
    }

    Status counts(uint32_t& min, uint32_t& max) {
        skip("{");
        const auto low = number();
        if (!low) return refuse("{ begins a repeat and needs a number; write \\{ for the character");
        min = max = *low;
        if (skip(",")) max = number().value_or(Nfa::kEndless);
        if (!skip("}")) return refuse("a { without its }");
        if (min > max) return refuse("a repeat whose least is above its most");
        if (min > kRepeatsMax || (max != Nfa::kEndless && max > kRepeatsMax))
            return refuse(fmt::format("a repeat of more than {}", kRepeatsMax));
        return Ok{};
    }

    Result<Pattern> atom(uint32_t depth) {
        if (quantifier_follows()) return refuse("nothing to repeat");
        if (skip("(")) return group(depth);
        if (skip("[")) return bracket();
        if (skip(".")) return Pattern::of(flags_.dot_all ? CodePointSet{{0, kCodePointMax}} : kLineEnds.complement());
        if (rest_[0] == ']' || rest_[0] == '}') return refuse("a closing bracket without its opening one");
        if (skip("\\")) {
            if (rest_.empty()) return refuse("a \\ at the end");
            if (rest_[0] == 'b' || rest_[0] == 'B') return cannot("\\b and \\B are not supported");
            if (rest_[0] >= '1' && rest_[0] <= '9') return cannot("back references are not supported");
            if (rest_[0] == 'k') return cannot("back references are not supported");
            auto set = escape(false, false);
            if (!set) return set.error();
            return Pattern::of(cased(*std::move(set)));
        }
        const int64_t c = take_character(rest_);
        if (c < 0) return refuse("not valid UTF-8");
        return Pattern::of(cased(one(static_cast<uint32_t>(c))));
    }

    Result<Pattern> group(uint32_t depth) {
        if (skip("?")) {
            if (flags_.python && rest_.starts_with("P<")) skip("P");
            if (skip("<") && !rest_.empty() && rest_[0] != '=' && rest_[0] != '!') {
                const size_t end = rest_.find('>');
                if (end == std::string_view::npos || end == 0) return refuse("a group's name has no end");
                rest_.remove_prefix(end + 1);
            } else if (!skip(":"))
                return cannot("look-ahead, look-behind and flags in groups are not supported");
        }
        auto inside = choice(depth + 1);
        if (!inside) return inside;
        if (!skip(")")) return refuse("a ( without its )");
        return inside;
    }

    static CodePointSet one(uint32_t c) { return {{c, c}}; }
    static CodePointSet both(const CodePointSet& a, const CodePointSet& b) {
        CodePointSet out = a.complement();
        out.add(b.complement());
        return out.complement();
    }
    static CodePointSet either(const CodePointSet& a, const CodePointSet& b) {
        CodePointSet out = a;
        out.add(b);
        return out;
    }

    /// With the other case of each ASCII letter, where case does not count.
    CodePointSet cased(CodePointSet set) const {
        if (!flags_.any_case) return set;
        CodePointSet others;
        for (const CodePointRange range : set.ranges())
            for (uint32_t c = std::max<uint32_t>(range.lo, 'A'); c <= std::min<uint32_t>(range.hi, 'z'); c++)
                if ((c >= 'a') || c <= 'Z') others.add(c ^ 0x20, c ^ 0x20);
        set.add(others);
        return set;
    }

    /// \d \w \s and their opposites as Python has them, or what is surely in them; in a class that is negated, whatever
    /// could be in them.
    Result<CodePointSet> python_class(char c, bool negated) const {
        const CodePointSet& ascii = c == 'd' || c == 'D' ? kDigits : kWord;
        switch (c) {
            case 's':
                return negated ? either(kSureSpace, kDoubtfulSpace) : kSureSpace;
            case 'S':
                return negated ? kSureSpace.complement() : either(kSureSpace, kDoubtfulSpace).complement();
            case 'd':
            case 'w':
                if (negated) break;
                return CodePointSet(ascii);
            default:
                if (negated) return ascii.complement();
                return both(ascii.complement(), kAscii);
        }
        return cannot("\\d and \\w in a class that is negated are not supported: write the characters");
    }

    Result<uint32_t> hex(size_t digits) {
        uint32_t value = 0;
        for (size_t i = 0; i < digits; i++) {
            const int digit = i < rest_.size() ? hex_digit(rest_[i]) : -1;
            if (digit < 0) return refuse("an escape with too few hexadecimal digits");
            value = value * 16 + static_cast<uint32_t>(digit);
        }
        rest_.remove_prefix(digits);
        return value;
    }

    Result<uint32_t> unicode_escape() {
        if (skip("{")) {
            const size_t end = rest_.find('}');
            if (end == std::string_view::npos || end == 0 || end > 8) return refuse("\\u{ without its }");
            auto value = hex(end);
            if (!value) return value;
            skip("}");
            if (*value > kCodePointMax) return refuse("a character beyond Unicode");
            return value;
        }
        auto value = hex(4);
        if (!value || *value < 0xD800 || *value > 0xDFFF) return value;
        if (*value > 0xDBFF || !skip("\\u")) return refuse("half of a surrogate pair");
        auto low = hex(4);
        if (!low) return low;
        if (*low < 0xDC00 || *low > 0xDFFF) return refuse("half of a surrogate pair");
        return 0x10000 + ((*value - 0xD800) << 10) + (*low - 0xDC00);
    }

    /// What stands behind a \.
    Result<CodePointSet> escape(bool in_class, bool negated) {
        const char c = rest_[0];
        rest_.remove_prefix(1);
        if (flags_.python && std::string_view("dDwWsS").find(c) != std::string_view::npos)
            return python_class(c, negated);
        if (flags_.python && c == 'a') return one('\a');
        switch (c) {
            case 'd':
                return CodePointSet(kDigits);
            case 'D':
                return kDigits.complement();
            case 'w':
                return CodePointSet(kWord);
            case 'W':
                return kWord.complement();
            case 's':
                return CodePointSet(kSpace);
            case 'S':
                return kSpace.complement();
            case 't':
                return one('\t');
            case 'n':
                return one('\n');
            case 'r':
                return one('\r');
            case 'f':
                return one('\f');
            case 'v':
                return one('\v');
            case 'b':
                if (in_class) return one('\b');
                break;
            case '0':
                if (!rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9')
                    return cannot("octal escapes are not supported");
                return one(0);
            case 'c':
                if (!rest_.empty() && ((rest_[0] >= 'a' && rest_[0] <= 'z') || (rest_[0] >= 'A' && rest_[0] <= 'Z'))) {
                    const auto letter = static_cast<uint32_t>(rest_[0]) % 32;
                    rest_.remove_prefix(1);
                    return one(letter);
                }
                return refuse("\\c without a letter");
            case 'x':
            case 'u': {
                auto value = c == 'x' ? hex(2) : unicode_escape();
                if (!value) return value.error();
                return one(*value);
            }
            case 'p':
            case 'P':
                return cannot("\\p classes are not supported");
            default:
                break;
        }
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (letter || static_cast<uint8_t>(c) >= 0x80) return refuse("an escape that means nothing");
        return one(static_cast<uint8_t>(c));
    }

    Result<CodePointSet> class_member(bool negated) {
        if (skip("\\")) {
            if (rest_.empty()) return refuse("a [ without its ]");
            return escape(true, negated);
        }
        const int64_t c = take_character(rest_);
        if (c < 0) return refuse("not valid UTF-8");
        return one(static_cast<uint32_t>(c));
    }

    Result<Pattern> bracket() {
        const bool negated = skip("^");
        CodePointSet set;
        if (flags_.python && skip("]")) set.add(']', ']');
        while (true) {
            if (rest_.empty()) return refuse("a [ without its ]");
            if (skip("]")) break;
            auto low = class_member(negated);
            if (!low) return low.error();
            if (rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']') {
                rest_.remove_prefix(1);
                auto high = class_member(negated);
                if (!high) return high.error();
                const auto& a = low->ranges();
                const auto& b = high->ranges();
                const auto single = [](const auto& r) { return r.size() == 1 && r[0].lo == r[0].hi; };
                if (!single(a) || !single(b) || a[0].lo > b[0].lo) return refuse("a range without order");
                set.add(a[0].lo, b[0].lo);
                continue;
            }
            set.gather(*low);
        }
        set.tidy();
        set = cased(std::move(set));
        if (!negated) return Pattern::of(std::move(set));
        if (flags_.any_case) {
            if (!set.ranges().empty() && set.ranges().back().hi > 0x7F)
                return cannot("what is beyond ASCII, without regard to case, in a class that is negated");
            set.add({{0x17F, 0x17F}, {0x212A, 0x212A}});  // other cases of s and k
        }
        return Pattern::of(set.complement());
    }

    std::string_view whole_, rest_;
    const Limits& limits_;
    RegexFlags flags_;
};

}  // namespace

Result<Pattern> read_regex(std::string_view source, const Limits& limits, RegexFlags flags) {
    return Reader(source, limits, flags).read();
}

}  // namespace cadans::grammar
