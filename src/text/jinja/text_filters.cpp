#include <algorithm>
#include <array>

#include "text/jinja/functions.h"
#include "text/jinja/machine.h"
#include "text/jinja/text_operations.h"
#include "text/utf8.h"

namespace cadans::text::jinja {
namespace {

using Args = const Arguments&;

int64_t integer_or(const Value* v, int64_t absent) { return v != nullptr && is_integer(*v) ? to_integer(*v) : absent; }

template <Case kCase>
Value change_case(Machine& m, const Value& v, Args) {
    const MarkedText text = to_text(v);
    return m.charge_bytes(4 * text.size()) ? m.text(with_case(text, kCase)) : Value{};
}

Value trim(Machine& m, const Value& v, Args a) {
    const Value* set = a.get(0, "chars");
    const MarkedText text = to_text(v);
    if (!m.charge(text.size() / 64)) return {};
    return m.text(stripped(text, set == nullptr ? nullptr : as_text(*set), true, true));
}

Value replace(Machine& m, const Value& v, Args a) {
    const Value *from = a.get(0, "old"), *to = a.get(1, "new");
    if (from == nullptr || to == nullptr) return m.fail("replace needs two texts");
    return m.text(replaced(m, to_text(v), to_text(*from), to_text(*to), integer_or(a.get(2, "count"), -1)));
}

Value escape(Machine& m, const Value& v, Args) { return m.text(html_escaped(to_text(v))); }
Value as_string(Machine& m, const Value& v, Args) { return m.text(to_text(v)); }

Value indent(Machine& m, const Value& v, Args a) {
    const Value* width = a.get(0, "width");
    const Value *first = a.get(1, "first"), *blank = a.get(2, "blank");
    const int64_t spaces = integer_or(width, 4);
    if (spaces < 0 || spaces > 1000) return m.fail("an indentation of 0 to 1000 is allowed");
    MarkedText indentation(std::string(static_cast<size_t>(spaces), ' '), true);
    if (width != nullptr && as_text(*width) != nullptr) indentation = *as_text(*width);
    const MarkedText source = to_text(v);
    std::vector<MarkedText> lines = split_lines(m, source, false);
    // Jinja splits the text with one more newline at its end, so that a last empty line counts.
    if (source.empty() || source.bytes().ends_with('\n')) lines.emplace_back();
    MarkedText out;
    for (size_t i = 0; i < lines.size(); i++) {
        if (!m.charge_growth(out.size(), indentation.size() + lines[i].size())) return {};
        if (i > 0) out.append("\n", true);
        const bool wanted =
            i == 0 ? first != nullptr && truth(*first) : !lines[i].empty() || (blank != nullptr && truth(*blank));
        if (wanted) out.append(indentation);
        out.append(lines[i]);
    }
    return m.text(std::move(out));
}

Value join(Machine& m, const Value& v, Args a) {
    const Value *separator = a.get(0, "d"), *attribute = a.get(1, "attribute");
    const MarkedText between = separator == nullptr ? MarkedText() : to_text(*separator);
    MarkedText out;
    bool first = true;
    for (const Value& item : m.iterate(v)) {
        const MarkedText piece = to_text(attribute == nullptr ? item : m.item(item, *attribute));
        if (!m.charge_growth(out.size(), between.size() + piece.size())) return {};
        if (!first) out.append(between);
        first = false;
        out.append(piece);
    }
    return m.text(std::move(out));
}

Value center(Machine& m, const Value& v, Args a) {
    const MarkedText text = to_text(v);
    const int64_t width = std::clamp<int64_t>(integer_or(a.get(0, "width"), 80), 0, 10'000);
    const auto missing =
        static_cast<size_t>(std::max<int64_t>(0, width - static_cast<int64_t>(utf8_length(text.bytes()))));
    const size_t left = missing / 2 + (missing & static_cast<size_t>(width) & 1);
    MarkedText out(std::string(left, ' '), true);
    out.append(text);
    out.append(std::string(missing - left, ' '), true);
    return m.text(std::move(out));
}

Value truncate(Machine& m, const Value& v, Args a) {
    const MarkedText text = to_text(v);
    if (!m.charge_bytes(text.size())) return {};
    const int64_t length = std::max<int64_t>(0, integer_or(a.get(0, "length"), 255)),
                  leeway = integer_or(a.get(3, "leeway"), 5);
    const Value *kill = a.get(1, "killwords"), *end_value = a.get(2, "end");
    const MarkedText end = end_value == nullptr ? MarkedText("...", true) : to_text(*end_value);
    const std::vector<size_t> places = character_places(text.bytes());
    const auto n = static_cast<int64_t>(places.size()) - 1;
    if (n <= length + leeway) return m.text(text);
    const int64_t kept = std::max<int64_t>(0, length - static_cast<int64_t>(utf8_length(end.bytes())));
    MarkedText out = text.slice(0, places[static_cast<size_t>(kept)]);
    if (kill == nullptr || !truth(*kill)) {
        const size_t space = out.bytes().rfind(' ');
        if (space != std::string::npos) out = out.slice(0, space);
    }
    out.append(end);
    return m.text(std::move(out));
}

Value count_words(Machine& m, const Value& v, Args) {
    const MarkedText text = to_text(v);
    if (!m.charge(text.size() / 64)) return {};
    return static_cast<int64_t>(split(m, text, nullptr, -1).size());
}

Value format(Machine& m, const Value& v, Args a) { return format_percent(m, to_text(v), m.list(a.positional, true)); }

constexpr std::array<NamedFilter, 17> kFilters = {{
    {"upper", change_case<Case::upper>},
    {"lower", change_case<Case::lower>},
    {"title", change_case<Case::word_title>},
    {"capitalize", change_case<Case::capital>},
    {"trim", trim},
    {"replace", replace},
    {"escape", escape},
    {"e", escape},
    {"forceescape", escape},
    {"safe", as_string},
    {"string", as_string},
    {"indent", indent},
    {"join", join},
    {"center", center},
    {"truncate", truncate},
    {"wordcount", count_words},
    {"format", format},
}};

}  // namespace

std::span<const NamedFilter> text_filters() noexcept { return kFilters; }

}  // namespace cadans::text::jinja
