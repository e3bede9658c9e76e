#include "text/jinja/value.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <array>
#include <charconv>
#include <cmath>

#include "text/utf8.h"

namespace cadans::text::jinja {
namespace {

bool prints(uint32_t c) noexcept {
    if (c == ' ') return true;
    if (c >= kStrayByte) return false;
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
        case UTF8PROC_CATEGORY_CC:
        case UTF8PROC_CATEGORY_CF:
        case UTF8PROC_CATEGORY_CS:
        case UTF8PROC_CATEGORY_CO:
        case UTF8PROC_CATEGORY_CN:
        case UTF8PROC_CATEGORY_ZL:
        case UTF8PROC_CATEGORY_ZP:
        case UTF8PROC_CATEGORY_ZS:
            return false;
        default:
            return true;
    }
}

std::string escaped(uint32_t c) {
    if (c == '\n') return "\\n";
    if (c == '\r') return "\\r";
    if (c == '\t') return "\\t";
    if (c >= kStrayByte) return fmt::format("\\x{:02x}", c - kStrayByte);
    if (c < 0x100) return fmt::format("\\x{:02x}", c);
    return c < 0x10000 ? fmt::format("\\u{:04x}", c) : fmt::format("\\U{:08x}", c);
}

void append_repr(MarkedText& out, const MarkedText& text) {
    const std::string& s = text.bytes();
    const bool single = s.find('\'') == s.npos || s.find('"') != s.npos;
    const char quote = single ? '\'' : '"';
    out.append(std::string_view(&quote, 1), true);
    for (size_t at = 0; at < s.size();) {
        const Utf8Char c = utf8_at(s, at);
        const bool trusted = text.trusted_at(at);
        if (c.code_point == '\\' || c.code_point == static_cast<uint32_t>(quote)) out.append("\\", trusted);
        if (prints(c.code_point))
            out.append(std::string_view(s).substr(at, c.bytes), trusted);
        else
            out.append(escaped(c.code_point), trusted);
        at += c.bytes;
    }
    out.append(std::string_view(&quote, 1), true);
}

void append_value(MarkedText& out, const Value& v, bool repr) {
    if (const MarkedText* text = as_text(v)) {
        if (repr)
            append_repr(out, *text);
        else
            out.append(*text);
    } else if (const List* list = as_list(v)) {
        out.append(list->tuple ? "(" : "[", true);
        for (size_t i = 0; i < list->items.size(); i++) {
            if (i > 0) out.append(", ", true);
            append_value(out, list->items[i], true);
        }
        out.append(list->tuple ? (list->items.size() == 1 ? ",)" : ")") : "]", true);
    } else if (const Dict* dict = as_dict(v)) {
        out.append("{", true);
        for (size_t i = 0; i < dict->items.size(); i++) {
            if (i > 0) out.append(", ", true);
            append_value(out, dict->items[i].first, true);
            out.append(": ", true);
            append_value(out, dict->items[i].second, true);
        }
        out.append("}", true);
    } else if (holds<None>(v)) {
        out.append("None", true);
    } else if (const bool* flag = std::get_if<bool>(&v)) {
        out.append(*flag ? "True" : "False", true);
    } else if (const int64_t* number = std::get_if<int64_t>(&v)) {
        out.append(std::to_string(*number), true);
    } else if (const double* real = std::get_if<double>(&v)) {
        out.append(real_text(*real), true);
    } else if (!holds<Undefined>(v)) {
        out.append(fmt::format("<{}>", type_name(v)), true);
    } else if (repr) {
        out.append("Undefined", true);
    }
}

}  // namespace

const Value* Dict::find(std::string_view key) const noexcept {
    for (const auto& [k, v] : items) {
        const MarkedText* text = as_text(k);
        if (text != nullptr && text->bytes() == key) return &v;
    }
    return nullptr;
}

const Value* Dict::find(const Value& key) const noexcept {
    for (const auto& [k, v] : items) {
        if (equal(k, key)) return &v;
    }
    return nullptr;
}

void Dict::set(Value key, Value value) {
    for (auto& [k, v] : items) {
        if (!equal(k, key)) continue;
        v = std::move(value);
        return;
    }
    items.emplace_back(std::move(key), std::move(value));
}

Value* Namespace::find(std::string_view name) noexcept {
    for (auto& [k, v] : items) {
        if (k == name) return &v;
    }
    return nullptr;
}

const Value* Arguments::get(size_t place, std::string_view name) const noexcept {
    if (place < positional.size()) return &positional[place];
    for (const auto& [k, v] : named) {
        if (k == name) return &v;
    }
    return nullptr;
}

Value make_text(std::string bytes, bool trusted) {
    return std::make_shared<const MarkedText>(std::move(bytes), trusted);
}
Value make_text(MarkedText text) { return std::make_shared<const MarkedText>(std::move(text)); }

uint32_t depth_of(const Value& v) noexcept {
    if (const List* list = as_list(v)) return list->depth;
    if (const Dict* dict = as_dict(v)) return dict->depth;
    if (const auto* f = std::get_if<std::shared_ptr<const Callable>>(&v)) return depth_of((*f)->self) + 1;
    return 0;
}

int64_t to_integer(const Value& v) noexcept {
    if (const bool* flag = std::get_if<bool>(&v)) return *flag ? 1 : 0;
    const int64_t* number = std::get_if<int64_t>(&v);
    return number == nullptr ? 0 : *number;
}

double to_real(const Value& v) noexcept {
    const double* real = std::get_if<double>(&v);
    return real == nullptr ? static_cast<double>(to_integer(v)) : *real;
}

bool truth(const Value& v) noexcept {
    if (holds<Undefined>(v) || holds<None>(v)) return false;
    if (is_integer(v)) return to_integer(v) != 0;
    if (holds<double>(v)) return to_real(v) != 0.0;
    if (const MarkedText* text = as_text(v)) return !text->empty();
    if (const List* list = as_list(v)) return !list->items.empty();
    if (const Dict* dict = as_dict(v)) return !dict->items.empty();
    return true;
}

bool equal(const Value& a, const Value& b) noexcept {
    if (is_integer(a) && is_integer(b)) return to_integer(a) == to_integer(b);
    if (is_number(a) && is_number(b)) return to_real(a) == to_real(b);
    if (a.index() != b.index()) return false;
    if (const MarkedText* text = as_text(a)) return text->bytes() == as_text(b)->bytes();
    if (const List* x = as_list(a)) {
        const List* y = as_list(b);
        if (x->tuple != y->tuple || x->items.size() != y->items.size()) return false;
        for (size_t i = 0; i < x->items.size(); i++) {
            if (!equal(x->items[i], y->items[i])) return false;
        }
        return true;
    }
    if (const Dict* x = as_dict(a)) {
        const Dict* y = as_dict(b);
        if (x->items.size() != y->items.size()) return false;
        for (const auto& [key, value] : x->items) {
            const Value* other = y->find(key);
            if (other == nullptr || !equal(value, *other)) return false;
        }
        return true;
    }
    if (holds<None>(a) || holds<Undefined>(a)) return true;
    if (const auto* space = std::get_if<std::shared_ptr<Namespace>>(&a))
        return *space == std::get<std::shared_ptr<Namespace>>(b);
    return false;
}

std::string_view type_name(const Value& v) noexcept {
    constexpr std::array<std::string_view, 11> kNames = {"Undefined", "NoneType", "bool",      "int",  "float",   "str",
                                                         "list",      "dict",     "namespace", "loop", "function"};
    const List* list = as_list(v);
    return list != nullptr && list->tuple ? "tuple" : kNames[v.index()];
}

std::string real_text(double x) {
    if (std::isnan(x)) return "nan";
    if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
    std::array<char, 64> buffer{};
    const auto scientific =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), x, std::chars_format::scientific);
    const std::string_view text(buffer.data(), static_cast<size_t>(scientific.ptr - buffer.data()));
    const size_t e = text.find('e');
    int exponent = 0;
    const char* digits = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
    std::from_chars(digits, text.data() + text.size(), exponent);
    if (exponent < -4 || exponent >= 16) return std::string(text);  // Python, too, writes at least two exponent digits
    const auto fixed = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x, std::chars_format::fixed);
    std::string out(buffer.data(), static_cast<size_t>(fixed.ptr - buffer.data()));
    return out.find('.') == out.npos ? out + ".0" : out;
}

MarkedText to_text(const Value& v) {
    MarkedText out;
    append_value(out, v, false);
    return out;
}

MarkedText to_repr(const Value& v) {
    MarkedText out;
    append_value(out, v, true);
    return out;
}

}  // namespace cadans::text::jinja
