#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "text/jinja/functions.h"
#include "text/jinja/json_text.h"
#include "text/jinja/machine.h"
#include "text/jinja/text_operations.h"

namespace cadans::text::jinja {
namespace {

using Args = const Arguments&;

Value default_value(Machine&, const Value& v, Args a) {
    const Value *value = a.get(0, "default_value"), *boolean = a.get(1, "boolean");
    const bool absent = holds<Undefined>(v) || (boolean != nullptr && truth(*boolean) && !truth(v));
    return !absent ? v : value == nullptr ? make_text("") : *value;
}

Value tojson(Machine& m, const Value& v, Args a) {
    // transformers' own filter: tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False); in
    // Jinja's the first argument is the indentation, and templates use both.
    JsonStyle style;
    const Value* indent = a.get(SIZE_MAX, "indent");
    if (indent == nullptr && !a.positional.empty() && holds<int64_t>(a.positional[0])) indent = &a.positional[0];
    if (indent != nullptr && is_integer(*indent)) style.indent = to_integer(*indent);
    if (style.indent > 100) return m.fail("an indentation of 0 to 100 is allowed");
    if (const Value* ascii = a.get(SIZE_MAX, "ensure_ascii")) style.ascii = truth(*ascii);
    if (const Value* sorted = a.get(SIZE_MAX, "sort_keys")) style.sorted = truth(*sorted);
    if (const Value* separators = a.get(SIZE_MAX, "separators");
        separators != nullptr && as_list(*separators) != nullptr) {
        const auto& pair = as_list(*separators)->items;
        if (pair.size() != 2) return m.fail("separators are two texts");
        style.item_separator = to_text(pair[0]).bytes();
        style.key_separator = to_text(pair[1]).bytes();
    }
    return m.text(to_json(m, v, style));
}

/// A number at the front of a text, white space aside, or nothing.
template <class Number>
bool read_number(std::string_view text, Number& out, int base) {
    std::string digits;
    for (const char c : text) {
        if (c != '_') digits.push_back(c);
    }
    std::string_view d = digits;
    if (d.starts_with('+')) d.remove_prefix(1);
    std::from_chars_result read{};
    if constexpr (std::is_same_v<Number, double>)
        read = std::from_chars(d.data(), d.data() + d.size(), out);
    else
        read = std::from_chars(d.data(), d.data() + d.size(), out, base);
    return !d.empty() && read.ec == std::errc() && read.ptr == d.data() + d.size();
}

Value to_int(Machine& m, const Value& v, Args a) {
    const Value *absent = a.get(0, "default"), *base_value = a.get(1, "base");
    const Value otherwise = absent == nullptr ? Value(int64_t{0}) : *absent;
    const int64_t base = base_value != nullptr && is_integer(*base_value) ? to_integer(*base_value) : 10;
    double real = 0;
    if (const MarkedText* text = as_text(v)) {
        if (!m.charge(text->size() / 64)) return {};
        const std::string digits = stripped(*text, nullptr, true, true).bytes();
        int64_t number = 0;
        if (base >= 2 && base <= 36 && read_number(digits, number, static_cast<int>(base))) return number;
        if (!read_number(digits, real, 10)) return otherwise;
    } else if (is_integer(v)) {
        return to_integer(v);
    } else if (holds<double>(v)) {
        real = to_real(v);
    } else {
        return otherwise;
    }
    return std::abs(real) < 9.2e18 ? Value(static_cast<int64_t>(real)) : otherwise;
}

Value to_float(Machine& m, const Value& v, Args a) {
    const Value* absent = a.get(0, "default");
    double real = 0;
    if (is_number(v)) return to_real(v);
    const MarkedText* text = as_text(v);
    if (text != nullptr && !m.charge(text->size() / 64)) return {};
    if (text != nullptr && read_number(stripped(*text, nullptr, true, true).bytes(), real, 10)) return real;
    return absent == nullptr ? Value(0.0) : *absent;
}

Value round_value(Machine& m, const Value& v, Args a) {
    const Value *precision = a.get(0, "precision"), *method = a.get(1, "method");
    if (!is_number(v)) return m.fail(fmt::format("a {} cannot be rounded", type_name(v)));
    const int64_t digits = precision != nullptr && is_integer(*precision) ? to_integer(*precision) : 0;
    if (digits < -300 || digits > 300) return m.fail("a precision of -300 to 300 is allowed");
    const std::string how = method == nullptr ? "common" : to_text(*method).bytes();
    const double x = to_real(v), scale = std::pow(10.0, static_cast<double>(digits));
    if (how == "ceil") return std::ceil(x * scale) / scale;
    if (how == "floor") return std::floor(x * scale) / scale;
    if (how != "common") return m.fail("the methods of round are common, ceil and floor");
    if (is_integer(v) && digits >= 0) return to_integer(v);
    if (is_integer(v)) return static_cast<int64_t>(std::nearbyint(x * scale) / scale);
    if (digits < 0) return std::nearbyint(x * scale) / scale;
    // The decimal nearest to the exact value, as Python rounds.
    double rounded = x;
    const std::string decimals = fmt::format("{:.{}f}", x, digits);
    std::from_chars(decimals.data(), decimals.data() + decimals.size(), rounded);
    return rounded;
}

Value absolute(Machine& m, const Value& v, Args) {
    if (!is_number(v)) return m.fail(fmt::format("a {} has no absolute value", type_name(v)));
    if (holds<double>(v)) return std::abs(to_real(v));
    return to_integer(v) < 0 ? m.binary("-", int64_t{0}, v) : Value(to_integer(v));
}

Value attr(Machine& m, const Value& v, Args a) {
    const Value* name = a.get(0, "name");
    return name == nullptr         ? m.fail("attr needs a name")
           : as_dict(v) != nullptr ? Value(Undefined{to_text(*name).bytes()})
                                   : m.attribute(v, to_text(*name).bytes());
}

constexpr std::array<NamedFilter, 8> kFilters = {{
    {"default", default_value},
    {"d", default_value},
    {"tojson", tojson},
    {"int", to_int},
    {"float", to_float},
    {"round", round_value},
    {"abs", absolute},
    {"attr", attr},
}};

}  // namespace

std::span<const NamedFilter> value_filters() noexcept { return kFilters; }

Value Machine::filter(std::string_view name, const Value& value, const Arguments& arguments) {
    const Level level(*this);
    if (failed()) return {};
    for (const auto& table : {text_filters(), list_filters(), value_filters()}) {
        for (const NamedFilter& known : table) {
            if (known.name == name) return known.filter(*this, value, arguments);
        }
    }
    return fail(fmt::format("the filter \"{}\" is not supported (template line {})", name, line_),
                ErrorCode::unsupported);
}

}  // namespace cadans::text::jinja
