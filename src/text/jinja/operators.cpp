#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "text/jinja/machine.h"
#include "text/jinja/text_operations.h"
#include "text/utf8.h"

namespace cadans::text::jinja {
namespace {

bool integer_operation(std::string_view op, int64_t a, int64_t b, int64_t& out) noexcept {
    if (op == "+") return !__builtin_add_overflow(a, b, &out);
    if (op == "-") return !__builtin_sub_overflow(a, b, &out);
    if (op == "*") return !__builtin_mul_overflow(a, b, &out);
    if (b == -1) return op == "%" ? (out = 0, true) : !__builtin_sub_overflow(int64_t{0}, a, &out);
    int64_t quotient = a / b;
    if (a % b != 0 && (a < 0) != (b < 0)) quotient--;  // Python rounds down
    out = op == "//" ? quotient : a - quotient * b;
    return true;
}

bool integer_power(int64_t base, int64_t exponent, int64_t& out) noexcept {
    out = 1;
    for (; exponent > 0; exponent--) {
        if (__builtin_mul_overflow(out, base, &out)) return false;
        if (out == 0 || out == 1) break;
        if (out == -1 && base == -1) return out = exponent % 2 == 1 ? -1 : 1, true;
    }
    return true;
}

Value real_operation(Machine& machine, std::string_view op, double a, double b) {
    if (op == "+") return a + b;
    if (op == "-") return a - b;
    if (op == "*") return a * b;
    if (op == "**") return std::pow(a, b);
    if (b == 0.0) return machine.fail("division by zero");
    if (op == "/") return a / b;
    const double quotient = std::floor(a / b);
    return op == "//" ? quotient : a - quotient * b;
}

Value number_operation(Machine& machine, std::string_view op, const Value& a, const Value& b) {
    const bool integers = is_integer(a) && is_integer(b);
    if (!integers || op == "/" || (op == "**" && to_integer(b) < 0))
        return real_operation(machine, op, to_real(a), to_real(b));
    int64_t out = 0;
    if ((op == "//" || op == "%") && to_integer(b) == 0) return machine.fail("division by zero");
    const bool fits = op == "**" ? integer_power(to_integer(a), to_integer(b), out)
                                 : integer_operation(op, to_integer(a), to_integer(b), out);
    return fits ? Value(out) : machine.fail("an integer beyond 64 bits");
}

Value repeated(Machine& machine, const Value& what, int64_t times) {
    const auto n = static_cast<size_t>(std::max<int64_t>(times, 0));
    if (const MarkedText* text = as_text(what)) {
        const bool fits = text->empty() || n <= machine.value_bytes_max() / text->size();
        if (!machine.charge_bytes(fits ? n * text->size() : machine.value_bytes_max() + 1)) return {};
        MarkedText out;
        for (size_t i = 0; i < n && !text->empty(); i++) out.append(*text);
        return machine.text(std::move(out));
    }
    const List& list = *as_list(what);
    const bool fits = list.items.empty() || n <= machine.value_bytes_max() / list.items.size();
    if (!machine.charge(fits ? n * list.items.size() : UINT64_MAX)) return {};
    std::vector<Value> items;
    for (size_t i = 0; i < n && !list.items.empty(); i++)
        items.insert(items.end(), list.items.begin(), list.items.end());
    return machine.list(std::move(items), list.tuple);
}

/// Where a slice begins, ends and steps, as Python's slice.indices().
struct Range {
    int64_t begin, end, step;
};

Range slice_range(int64_t n, const Value& begin, const Value& end, int64_t step) noexcept {
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    const auto place = [&](const Value& v, int64_t absent) {
        if (!is_integer(v)) return absent;
        int64_t i = to_integer(v);
        if (i < 0) i = i < -n ? low : i + n;
        return std::clamp(i, low, high);
    };
    return {place(begin, step > 0 ? low : high), place(end, step > 0 ? high : low), step};
}

/// Steps that equal() may take on this value: a dict looks each key up by walking.
uint64_t equality_cost(const Value& v) noexcept {
    uint64_t cost = 1;
    if (const MarkedText* text = as_text(v)) {
        cost += text->size() / 64;
    } else if (const List* list = as_list(v)) {
        for (const Value& item : list->items) cost += equality_cost(item);
    } else if (const Dict* dict = as_dict(v)) {
        cost += dict->items.size() * dict->items.size() / 8;
        for (const auto& entry : dict->items) cost += equality_cost(entry.second);
    }
    return cost;
}

bool fits_slice(const Value& v) noexcept { return is_integer(v) || holds<None>(v); }

}  // namespace

Value Machine::binary(std::string_view op, const Value& a, const Value& b) {
    if (failed()) return {};
    for (const Value* v : {&a, &b}) {
        if (const auto* undefined = std::get_if<Undefined>(v))
            return fail(fmt::format("'{}' is undefined (template line {})", undefined->name, line_));
    }
    if (is_number(a) && is_number(b)) return number_operation(*this, op, a, b);
    if (op == "+" && as_text(a) != nullptr && as_text(b) != nullptr) {
        MarkedText out = *as_text(a);
        if (!charge_bytes(out.size() + as_text(b)->size())) return {};
        out.append(*as_text(b));
        return text(std::move(out));
    }
    if (op == "+" && as_list(a) != nullptr && as_list(b) != nullptr && as_list(a)->tuple == as_list(b)->tuple) {
        if (!charge(as_list(a)->items.size() + as_list(b)->items.size())) return {};
        std::vector<Value> items = as_list(a)->items;
        items.insert(items.end(), as_list(b)->items.begin(), as_list(b)->items.end());
        return list(std::move(items), as_list(a)->tuple);
    }
    if (op == "*" && is_integer(b) && (as_text(a) != nullptr || as_list(a) != nullptr))
        return repeated(*this, a, to_integer(b));
    if (op == "*" && is_integer(a) && (as_text(b) != nullptr || as_list(b) != nullptr))
        return repeated(*this, b, to_integer(a));
    if (op == "%" && as_text(a) != nullptr) return format_percent(*this, *as_text(a), b);
    return fail(fmt::format("unsupported operand types for {}: '{}' and '{}' (template line {})", op, type_name(a),
                            type_name(b), line_));
}

bool Machine::contains(const Value& in, const Value& what) {
    if (const MarkedText* text = as_text(in)) {
        const MarkedText* part = as_text(what);
        if (part == nullptr) {
            fail(fmt::format("'in <string>' needs a string on its left, not {} (template line {})", type_name(what),
                             line_));
            return false;
        }
        charge(text->size() / 64);
        return text->bytes().find(part->bytes()) != std::string::npos;
    }
    if (const List* list = as_list(in)) {
        if (!charge(list->items.size() * equality_cost(what))) return false;
        return std::any_of(list->items.begin(), list->items.end(), [&](const Value& v) { return equal(v, what); });
    }
    if (const Dict* dict = as_dict(in)) {
        charge(dict->items.size() / 8);
        return dict->find(what) != nullptr;
    }
    if (!holds<Undefined>(in))
        fail(fmt::format("a {} has no items to look through (template line {})", type_name(in), line_));
    return false;
}

bool Machine::compare(std::string_view op, const Value& a, const Value& b) {
    if (failed()) return false;
    if (op == "in") return contains(b, a);
    if (op == "not in") return !contains(b, a);
    if (!charge(std::min(equality_cost(a), equality_cost(b)))) return false;
    if (op == "==" || op == "!=") return equal(a, b) == (op == "==");
    int order = 0;
    if (is_integer(a) && is_integer(b)) {
        order = to_integer(a) < to_integer(b) ? -1 : to_integer(a) > to_integer(b);
    } else if (is_number(a) && is_number(b)) {
        const double x = to_real(a), y = to_real(b);
        if (std::isnan(x) || std::isnan(y)) return false;
        order = x < y ? -1 : x > y;
    } else if (as_text(a) != nullptr && as_text(b) != nullptr) {
        order = as_text(a)->bytes().compare(as_text(b)->bytes());
    } else if (as_list(a) != nullptr && as_list(b) != nullptr) {
        const auto &x = as_list(a)->items, &y = as_list(b)->items;
        for (size_t i = 0; i < std::min(x.size(), y.size()); i++) {
            if (!equal(x[i], y[i])) return compare(op, x[i], y[i]);
        }
        order = x.size() < y.size() ? -1 : x.size() > y.size();
    } else {
        fail(fmt::format("'{}' does not work between {} and {} (template line {})", op, type_name(a), type_name(b),
                         line_));
        return false;
    }
    if (op == "<") return order < 0;
    if (op == ">") return order > 0;
    return op == "<=" ? order <= 0 : order >= 0;
}

Value Machine::slice(const Value& of, const Value& begin, const Value& end, const Value& step) {
    if (failed()) return {};
    if (!fits_slice(begin) || !fits_slice(end) || !fits_slice(step))
        return fail(fmt::format("slice bounds must be integers (template line {})", line_));
    const int64_t stride = is_integer(step) ? to_integer(step) : 1;
    if (stride == 0) return fail("a slice cannot step by zero");
    if (const List* list = as_list(of)) {
        std::vector<Value> items;
        const Range r = slice_range(static_cast<int64_t>(list->items.size()), begin, end, stride);
        for (int64_t i = r.begin; stride > 0 ? i < r.end : i > r.end;) {
            items.push_back(list->items[static_cast<size_t>(i)]);
            if (__builtin_add_overflow(i, stride, &i)) break;
        }
        return this->list(std::move(items), list->tuple);
    }
    const MarkedText* source = as_text(of);
    if (source == nullptr) {
        if (holds<Undefined>(of))
            return fail(fmt::format("'{}' is undefined (template line {})", std::get<Undefined>(of).name, line_));
        return fail(fmt::format("a {} cannot be sliced (template line {})", type_name(of), line_));
    }
    if (!charge_bytes(source->size())) return {};
    const std::vector<size_t> places = character_places(source->bytes());
    const Range r = slice_range(static_cast<int64_t>(places.size()) - 1, begin, end, stride);
    if (stride == 1)
        return text(r.begin < r.end
                        ? source->slice(places[static_cast<size_t>(r.begin)], places[static_cast<size_t>(r.end)])
                        : MarkedText());
    MarkedText out;
    for (int64_t i = r.begin; stride > 0 ? i < r.end : i > r.end;) {
        out.append(*source, places[static_cast<size_t>(i)], places[static_cast<size_t>(i) + 1]);
        if (__builtin_add_overflow(i, stride, &i)) break;
    }
    return text(std::move(out));
}

std::vector<Value> Machine::iterate(const Value& value) {
    std::vector<Value> items;
    if (failed()) return items;
    if (const List* list = as_list(value)) {
        if (charge(list->items.size())) items = list->items;
    } else if (const Dict* dict = as_dict(value)) {
        if (charge(dict->items.size())) {
            for (const auto& entry : dict->items) items.push_back(entry.first);
        }
    } else if (const MarkedText* source = as_text(value)) {
        if (!charge(source->size())) return items;
        for (size_t at = 0; at < source->size();) {
            const size_t n = utf8_at(source->bytes(), at).bytes;
            items.push_back(make_text(source->slice(at, at + n)));
            at += n;
        }
    } else if (!holds<Undefined>(value)) {
        fail(fmt::format("a {} cannot be walked through (template line {})", type_name(value), line_));
    }
    return items;
}

}  // namespace cadans::text::jinja
