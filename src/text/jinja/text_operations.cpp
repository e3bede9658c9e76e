#include "text/jinja/text_operations.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "text/jinja/machine.h"
#include "text/utf8.h"

namespace cadans::text::jinja {
namespace {

// A piece of a text takes more memory than the bytes in it.
constexpr uint64_t kPieceSteps = 4;

uint32_t upper(uint32_t c) noexcept {
    return c < kStrayByte ? static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))) : c;
}
uint32_t lower(uint32_t c) noexcept {
    return c < kStrayByte ? static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))) : c;
}
bool has_case(uint32_t c) noexcept { return upper(c) != c || lower(c) != c; }

/// Between words, for Jinja's title filter; Python's title() starts a word after anything without case.
bool parts_words(uint32_t c) noexcept {
    return is_python_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}

/// The characters that are stripped: those of a text, or white space. Both texts may be a client's, and long.
class StripSet {
  public:
    explicit StripSet(const MarkedText* set) : spaces_(set == nullptr) {
        if (spaces_) return;
        for (size_t at = 0; at < set->size();) {
            const Utf8Char c = utf8_at(set->bytes(), at);
            characters_.insert(c.code_point);
            at += c.bytes;
        }
    }

    bool holds(uint32_t code_point) const {
        return spaces_ ? is_python_space(code_point) : characters_.contains(code_point);
    }

  private:
    bool spaces_;
    std::set<uint32_t> characters_;
};

/// The place where the character before `end` begins.
size_t character_before(std::string_view text, size_t end) noexcept {
    for (size_t back = std::min<size_t>(4, end); back > 1; back--) {
        if (utf8_at(text, end - back).bytes == back) return end - back;
    }
    return end - 1;
}

std::vector<MarkedText> split_at_spaces(Machine& machine, const MarkedText& text, int64_t most) {
    std::vector<MarkedText> pieces;
    const std::string& s = text.bytes();
    size_t at = 0;
    const auto skip = [&](bool spaces) {
        while (at < s.size() && is_python_space(utf8_at(s, at).code_point) == spaces) at += utf8_at(s, at).bytes;
    };
    for (skip(true); at < s.size() && machine.charge(kPieceSteps); skip(true)) {
        if (most >= 0 && static_cast<int64_t>(pieces.size()) == most) {
            pieces.push_back(text.slice(at, s.size()));
            return pieces;
        }
        const size_t begin = at;
        skip(false);
        pieces.push_back(text.slice(begin, at));
    }
    return pieces;
}

/// One number by a C format, whose flags, width and precision are Python's as well; the caller has bounded them.
std::string printed_number(std::string_view spec, char kind, const Value& v) {
    const bool integer = std::string_view("dxXo").find(kind) != std::string_view::npos;
    const std::string format = "%" + std::string(spec) + (integer ? "ll" : "") + kind;
    const auto whole = holds<double>(v) ? static_cast<long long>(to_real(v)) : static_cast<long long>(to_integer(v));
    std::array<char, 1500> buffer{};
    const int n = integer ? std::snprintf(buffer.data(), buffer.size(), format.c_str(), whole)
                          : std::snprintf(buffer.data(), buffer.size(), format.c_str(), to_real(v));
    return std::string(buffer.data(), static_cast<size_t>(std::clamp<int>(n, 0, static_cast<int>(buffer.size()) - 1)));
}

}  // namespace

std::vector<size_t> character_places(std::string_view text) {
    std::vector<size_t> places;
    places.reserve(text.size() + 1);
    for (size_t at = 0; at < text.size();) {
        places.push_back(at);
        at += utf8_at(text, at).bytes;
    }
    places.push_back(text.size());
    return places;
}

bool is_python_space(uint32_t c) noexcept {
    return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

MarkedText with_case(const MarkedText& text, Case wanted) {
    MarkedText out;
    const std::string& s = text.bytes();
    bool inside_word = false;
    std::string changed;
    for (size_t at = 0; at < s.size();) {
        const Utf8Char c = utf8_at(s, at);
        const bool first = wanted == Case::title || wanted == Case::word_title ? !inside_word : at == 0;
        const bool raise = wanted == Case::upper || (wanted != Case::lower && first);
        changed.clear();
        append_utf8(changed, raise ? upper(c.code_point) : lower(c.code_point));
        out.append(changed, text.trusted_at(at));
        inside_word = wanted == Case::word_title ? !parts_words(c.code_point) : has_case(c.code_point);
        at += c.bytes;
    }
    return out;
}

MarkedText stripped(const MarkedText& text, const MarkedText* set, bool left, bool right) {
    const std::string& s = text.bytes();
    const StripSet strip(set);
    size_t begin = 0, end = s.size();
    while (left && begin < end) {
        const Utf8Char c = utf8_at(s, begin);
        if (!strip.holds(c.code_point)) break;
        begin += c.bytes;
    }
    while (right && end > begin) {
        const size_t place = character_before(s, end);
        if (!strip.holds(utf8_at(s, place).code_point)) break;
        end = place;
    }
    return text.slice(begin, end);
}

std::vector<MarkedText> split(Machine& machine, const MarkedText& text, const MarkedText* separator, int64_t most) {
    if (separator == nullptr) return split_at_spaces(machine, text, most);
    std::vector<MarkedText> pieces;
    size_t begin = 0;
    while (most < 0 || static_cast<int64_t>(pieces.size()) < most) {
        const size_t found = text.bytes().find(separator->bytes(), begin);
        if (found == std::string::npos || !machine.charge(kPieceSteps)) break;
        pieces.push_back(text.slice(begin, found));
        begin = found + separator->size();
    }
    pieces.push_back(text.slice(begin, text.size()));
    return pieces;
}

std::vector<MarkedText> split_from_right(Machine& machine, const MarkedText& text, const MarkedText* separator,
                                         int64_t most) {
    if (most < 0) return split(machine, text, separator, -1);
    std::vector<MarkedText> pieces;
    if (separator == nullptr) {  // words from the right: all of them, and the first ones joined again as they were
        std::vector<MarkedText> words = split_at_spaces(machine, text, -1);
        if (static_cast<int64_t>(words.size()) <= most) return words;
        MarkedText rest = stripped(text, nullptr, false, true);
        for (int64_t i = 0; i < most; i++) {
            const size_t bytes = words[words.size() - 1 - static_cast<size_t>(i)].size();
            pieces.push_back(rest.slice(rest.size() - bytes, rest.size()));
            rest = stripped(rest.slice(0, rest.size() - bytes), nullptr, false, true);
        }
        pieces.push_back(std::move(rest));
        std::reverse(pieces.begin(), pieces.end());
        return pieces;
    }
    size_t end = text.size();
    while (static_cast<int64_t>(pieces.size()) < most && end >= separator->size()) {
        const size_t found = text.bytes().rfind(separator->bytes(), end - separator->size());
        if (found == std::string::npos || !machine.charge(kPieceSteps)) break;
        pieces.push_back(text.slice(found + separator->size(), end));
        end = found;
    }
    pieces.push_back(text.slice(0, end));
    std::reverse(pieces.begin(), pieces.end());
    return pieces;
}

std::vector<MarkedText> split_lines(Machine& machine, const MarkedText& text, bool keep_ends) {
    const auto ends_line = [](uint32_t c) {
        return (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
    };
    std::vector<MarkedText> lines;
    const std::string& s = text.bytes();
    size_t begin = 0;
    for (size_t at = 0; at < s.size();) {
        const Utf8Char c = utf8_at(s, at);
        size_t next = at + c.bytes;
        if (ends_line(c.code_point) && machine.charge(kPieceSteps)) {
            if (c.code_point == '\r' && next < s.size() && s[next] == '\n') next++;
            lines.push_back(text.slice(begin, keep_ends ? next : at));
            begin = next;
        }
        at = next;
    }
    if (begin < s.size()) lines.push_back(text.slice(begin, s.size()));
    return lines;
}

MarkedText replaced(Machine& machine, const MarkedText& text, const MarkedText& from, const MarkedText& to,
                    int64_t most) {
    MarkedText out;
    const std::string& s = text.bytes();
    size_t begin = 0;
    for (int64_t count = 0; most < 0 || count < most; count++) {
        size_t found = s.find(from.bytes(), begin);
        if (from.empty()) found = count == 0 ? 0 : begin < s.size() ? begin + utf8_at(s, begin).bytes : s.npos;
        if (found == s.npos || !machine.charge_growth(out.size(), found - begin + to.size())) break;
        out.append(text, begin, found);
        out.append(to);
        begin = found + from.size();
    }
    if (machine.charge_growth(out.size(), s.size() - begin)) out.append(text, begin, s.size());
    return out;
}

MarkedText html_escaped(const MarkedText& text) {
    MarkedText out;
    for (size_t at = 0; at < text.size(); at++) {
        const char c = text.bytes()[at];
        const std::string_view escape = c == '&'    ? "&amp;"
                                        : c == '<'  ? "&lt;"
                                        : c == '>'  ? "&gt;"
                                        : c == '"'  ? "&#34;"
                                        : c == '\'' ? "&#39;"
                                                    : std::string_view(&text.bytes()[at], 1);
        out.append(escape, text.trusted_at(at));
    }
    return out;
}

Value format_percent(Machine& machine, const MarkedText& format, const Value& value) {
    const List* many = as_list(value) != nullptr && as_list(value)->tuple ? as_list(value) : nullptr;
    const std::string& s = format.bytes();
    MarkedText out;
    size_t used = 0, at = 0;
    while (at < s.size() && !machine.failed()) {
        const size_t percent = std::min(s.find('%', at), s.size());
        out.append(format, at, percent);
        if (percent == s.size()) break;
        const size_t spec_end = s.find_first_not_of("-+ #0123456789.", percent + 1);
        if (spec_end == s.npos) return machine.fail("incomplete format");
        const std::string spec = s.substr(percent + 1, spec_end - percent - 1);
        const char kind = s[spec_end] == 'i' ? 'd' : s[spec_end];
        at = spec_end + 1;
        if (kind == '%') {
            out.append("%", true);
            continue;
        }
        if (spec.size() > 6) return machine.fail("a format is too wide");
        if (many != nullptr ? used >= many->items.size() : used > 0)
            return machine.fail("not enough values for a format");
        const Value& v = many != nullptr ? many->items[used] : value;
        used++;
        if (kind == 's' || kind == 'r') {
            out.append(kind == 's' ? to_text(v) : to_repr(v));
        } else if (std::string_view("dxXofFeEgG").find(kind) != std::string_view::npos && is_number(v) &&
                   std::abs(to_real(v)) < 9.2e18) {
            if (std::count_if(spec.begin(), spec.end(), [](char c) { return c >= '0' && c <= '9'; }) > 3)
                return machine.fail("a format is too wide");
            out.append(printed_number(spec, kind, v), true);
        } else {
            return machine.fail(fmt::format("format %{} does not take a {}", kind, type_name(v)));
        }
        if (!machine.charge_bytes(out.size())) return {};
    }
    if (many != nullptr ? used < many->items.size() : used == 0 && as_dict(value) == nullptr)
        return machine.fail("not all values are used by a format");
    return machine.text(std::move(out));
}

Value format_braces(Machine& machine, const MarkedText& format, const Arguments& arguments) {
    const std::string& s = format.bytes();
    MarkedText out;
    size_t automatic = 0, at = 0;
    while (at < s.size() && !machine.failed()) {
        const size_t brace = std::min(s.find_first_of("{}", at), s.size());
        out.append(format, at, brace);
        if (brace == s.size()) break;
        if (brace + 1 < s.size() && s[brace + 1] == s[brace]) {
            out.append(format, brace, brace + 1);
            at = brace + 2;
            continue;
        }
        const size_t end = s.find('}', brace);
        if (s[brace] == '}' || end == s.npos) return machine.fail("a single brace in a format");
        const std::string field = s.substr(brace + 1, end - brace - 1);
        const bool number = field.find_first_not_of("0123456789") == field.npos && field.size() < 4;
        const size_t place = field.empty() ? automatic++ : number ? std::stoul(field) : SIZE_MAX;
        const Value* v = arguments.get(place, field);
        if (v == nullptr)
            return machine.fail(fmt::format("a format has no value for \"{}\"", field), ErrorCode::unsupported);
        out.append(to_text(*v));
        at = end + 1;
        if (!machine.charge_bytes(out.size())) return {};
    }
    return machine.text(std::move(out));
}

}  // namespace cadans::text::jinja
