#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja/functions.h"
#include "text/jinja/machine.h"
#include "text/jinja/text_operations.h"
#include "text/utf8.h"

namespace cadans::text::jinja {
namespace {

constexpr std::array<std::string_view, 31> kTextMethods = {
    "strip",        "lstrip",       "rstrip",    "split",      "rsplit",  "splitlines", "startswith", "endswith",
    "upper",        "lower",        "title",     "replace",    "find",    "rfind",      "index",      "count",
    "join",         "capitalize",   "isdigit",   "isalpha",    "isspace", "isupper",    "islower",    "format",
    "removeprefix", "removesuffix", "partition", "rpartition", "zfill",   "encode",     "swapcase"};
constexpr std::array<std::string_view, 11> kDictMethods = {
    "items", "keys", "values", "get", "pop", "update", "clear", "popitem", "setdefault", "copy", "fromkeys"};
constexpr std::array<std::string_view, 11> kListMethods = {"append", "extend", "insert", "remove",  "pop", "clear",
                                                           "index",  "count",  "sort",   "reverse", "copy"};

/// What one method call looks at.
struct Call {
    Machine& machine;
    std::string_view name;
    const Arguments& arguments;

    const MarkedText* text(size_t place, std::string_view keyword) const {
        const Value* v = arguments.get(place, keyword);
        return v == nullptr ? nullptr : as_text(*v);
    }
    int64_t integer(size_t place, std::string_view keyword, int64_t absent) const {
        const Value* v = arguments.get(place, keyword);
        return v != nullptr && is_integer(*v) ? to_integer(*v) : absent;
    }
    Value missing(std::string_view what) const { return machine.fail(fmt::format(".{}() needs {}", name, what)); }
};

Value listed(Machine& m, std::vector<MarkedText> pieces, bool tuple = false) {
    std::vector<Value> items;
    items.reserve(pieces.size());
    for (MarkedText& piece : pieces) items.push_back(make_text(std::move(piece)));
    return m.list(std::move(items), tuple);
}

Value split_method(const Call& c, const MarkedText& s) {
    const MarkedText* separator = c.text(0, "sep");
    if (separator != nullptr && separator->empty()) return c.machine.fail("empty separator");
    const int64_t most = c.integer(1, "maxsplit", -1);
    return listed(c.machine, c.name == "split" ? split(c.machine, s, separator, most)
                                               : split_from_right(c.machine, s, separator, most));
}

Value partition_method(const Call& c, const MarkedText& s) {
    const MarkedText* separator = c.text(0, "sep");
    if (separator == nullptr || separator->empty()) return c.missing("a text to cut at");
    const bool left = c.name == "partition";
    const size_t found = left ? s.bytes().find(separator->bytes()) : s.bytes().rfind(separator->bytes());
    if (found == std::string::npos)
        return listed(c.machine,
                      left ? std::vector{s, MarkedText(), MarkedText()} : std::vector{MarkedText(), MarkedText(), s},
                      true);
    return listed(
        c.machine,
        {s.slice(0, found), s.slice(found, found + separator->size()), s.slice(found + separator->size(), s.size())},
        true);
}

Value affix_method(const Call& c, const MarkedText& s) {
    const Value* what = c.arguments.get(0, "prefix");
    if (what == nullptr) return c.missing("a text");
    const auto fits = [&](const Value& v) {
        const MarkedText* affix = as_text(v);
        if (affix == nullptr) return false;
        return c.name == "startswith" ? s.bytes().starts_with(affix->bytes()) : s.bytes().ends_with(affix->bytes());
    };
    if (const List* many = as_list(*what)) return std::any_of(many->items.begin(), many->items.end(), fits);
    return as_text(*what) == nullptr ? c.missing("a text") : Value(fits(*what));
}

Value remove_affix_method(const Call& c, const MarkedText& s) {
    const MarkedText* affix = c.text(0, "prefix");
    if (affix == nullptr) return c.missing("a text");
    if (c.name == "removeprefix")
        return c.machine.text(s.bytes().starts_with(affix->bytes()) ? s.slice(affix->size(), s.size()) : s);
    return c.machine.text(s.bytes().ends_with(affix->bytes()) ? s.slice(0, s.size() - affix->size()) : s);
}

Value find_method(const Call& c, const MarkedText& s) {
    const MarkedText* what = c.text(0, "sub");
    if (what == nullptr) return c.missing("a text");
    if (!c.machine.charge_bytes(s.size())) return {};
    if (c.name == "count") {
        if (what->empty()) return static_cast<int64_t>(utf8_length(s.bytes())) + 1;
        int64_t count = 0;
        for (size_t at = 0; (at = s.bytes().find(what->bytes(), at)) != std::string::npos; at += what->size()) count++;
        return count;
    }
    const size_t found = c.name == "rfind" ? s.bytes().rfind(what->bytes()) : s.bytes().find(what->bytes());
    if (found != std::string::npos)
        return static_cast<int64_t>(utf8_length(std::string_view(s.bytes()).substr(0, found)));
    return c.name == "index" ? c.machine.fail("substring not found") : Value(int64_t{-1});
}

/// isdigit and its kin: all characters fit, and there is one.
Value is_method(const Call& c, const MarkedText& s) {
    if (!c.machine.charge_bytes(s.size())) return {};
    if (c.name == "isupper" || c.name == "islower") {
        const std::string up = with_case(s, Case::upper).bytes(), down = with_case(s, Case::lower).bytes();
        return up != down && s.bytes() == (c.name == "isupper" ? up : down);
    }
    for (size_t at = 0; at < s.size();) {
        const Utf8Char character = utf8_at(s.bytes(), at);
        const uint32_t p = character.code_point;
        const bool fits = c.name == "isdigit"                  ? p >= '0' && p <= '9'
                          : c.name == "isspace"                ? is_python_space(p)
                          : (p | 32) >= 'a' && (p | 32) <= 'z' ? true
                                                               : p >= 0xAA;
        if (!fits) return false;
        at += character.bytes;
    }
    return !s.empty();
}

Value text_method(const Call& c, const Value& self) {
    Machine& m = c.machine;
    const MarkedText& s = *as_text(self);
    // Looking through a long text is work, however little of it comes out.
    for (const std::string_view through :
         {"strip", "lstrip", "rstrip", "split", "rsplit", "splitlines", "partition", "rpartition"}) {
        if (c.name == through && !m.charge(s.size() / 64)) return {};
    }
    if (c.name == "strip") return m.text(stripped(s, c.text(0, "chars"), true, true));
    if (c.name == "lstrip") return m.text(stripped(s, c.text(0, "chars"), true, false));
    if (c.name == "rstrip") return m.text(stripped(s, c.text(0, "chars"), false, true));
    if (c.name == "split" || c.name == "rsplit") return split_method(c, s);
    if (c.name == "splitlines") return listed(m, split_lines(m, s, c.integer(0, "keepends", 0) != 0));
    if (c.name == "partition" || c.name == "rpartition") return partition_method(c, s);
    if (c.name == "startswith" || c.name == "endswith") return affix_method(c, s);
    if (c.name == "removeprefix" || c.name == "removesuffix") return remove_affix_method(c, s);
    if (c.name == "find" || c.name == "rfind" || c.name == "index" || c.name == "count") return find_method(c, s);
    if (c.name.starts_with("is")) return is_method(c, s);
    if (c.name == "join")
        return m.filter("join", c.arguments.positional.empty() ? Value{} : c.arguments.positional[0], {{self}, {}});
    if (c.name == "format") return format_braces(m, s, c.arguments);
    if (c.name == "title") return m.charge_bytes(4 * s.size()) ? m.text(with_case(s, Case::title)) : Value{};
    for (const std::string_view same : {"upper", "lower", "capitalize", "replace"}) {
        if (c.name == same) return m.filter(same, self, c.arguments);
    }
    return m.fail(fmt::format("the method .{}() is not supported", c.name), ErrorCode::unsupported);
}

Value dict_method(const Call& c, const Value& self) {
    Machine& m = c.machine;
    const Dict& dict = *as_dict(self);
    if (c.name == "items") return m.filter("items", self, {});
    if (c.name == "keys") return m.list(m.iterate(self));
    if (c.name == "copy") return self;
    if (c.name == "values") {
        std::vector<Value> values;
        for (const auto& entry : dict.items) values.push_back(entry.second);
        return m.list(std::move(values));
    }
    if (c.name == "get") {
        const Value *key = c.arguments.get(0, "key"), *absent = c.arguments.get(1, "default");
        if (key == nullptr) return c.missing("a key");
        if (!m.charge(1 + dict.items.size() / 8)) return {};
        const Value* found = dict.find(*key);
        return found != nullptr ? *found : absent != nullptr ? *absent : Value(None{});
    }
    return m.fail(fmt::format(".{}() would change a dict, which templates may not", c.name), ErrorCode::unsupported);
}

Value list_method(const Call& c, const Value& self) {
    const List& list = *as_list(self);
    if (c.name == "copy") return self;
    if (c.name == "index" || c.name == "count") {
        if (c.arguments.positional.empty()) return c.missing("a value");
        int64_t count = 0;
        for (size_t i = 0; i < list.items.size(); i++) {
            if (!c.machine.compare("==", list.items[i], c.arguments.positional[0])) continue;
            if (c.name == "index") return static_cast<int64_t>(i);
            count++;
        }
        return c.name == "count" ? Value(count) : c.machine.fail("value is not in list");
    }
    return c.machine.fail(fmt::format(".{}() would change a list, which templates may not; use + instead", c.name),
                          ErrorCode::unsupported);
}

template <size_t kSize>
bool among(const std::array<std::string_view, kSize>& names, std::string_view name) noexcept {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool has_method(const Value& of, std::string_view name) noexcept {
    if (as_text(of) != nullptr) return among(kTextMethods, name);
    if (as_dict(of) != nullptr) return among(kDictMethods, name);
    return as_list(of) != nullptr && among(kListMethods, name);
}

Value call_method(Machine& machine, const Value& of, std::string_view name, const Arguments& arguments) {
    const Call call{machine, name, arguments};
    if (as_text(of) != nullptr) return text_method(call, of);
    if (as_dict(of) != nullptr) return dict_method(call, of);
    if (as_list(of) != nullptr) return list_method(call, of);
    if (const auto* loop = std::get_if<std::shared_ptr<Loop>>(&of)) {
        const auto& values = arguments.positional;
        return values.empty() ? machine.fail("loop.cycle() needs values") : values[(*loop)->index0 % values.size()];
    }
    return {};
}

}  // namespace cadans::text::jinja
