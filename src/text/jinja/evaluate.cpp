#include <fmt/format.h>

#include "text/jinja/functions.h"
#include "text/jinja/machine.h"
#include "text/jinja/text_operations.h"

namespace cadans::text::jinja {

using Kind = Expression::Kind;

Value Machine::evaluate(const Expression& e) {
    const Level level(*this);
    if (failed()) return {};
    const auto part = [&](size_t i) { return evaluate(*e.parts[i]); };
    switch (e.kind) {
        case Kind::constant:
            return e.constant;
        case Kind::name:
            return evaluate_name(e);
        case Kind::list:
            return list(evaluate_all(e.parts));
        case Kind::tuple:
            return list(evaluate_all(e.parts), true);
        case Kind::dict:
            return evaluate_dict(e);
        case Kind::attribute: {
            line_ = e.line;
            return attribute(part(0), e.name);
        }
        case Kind::item: {
            const Value of = part(0);
            line_ = e.line;
            return item(of, part(1));
        }
        case Kind::slice:
            return evaluate_slice(e);
        case Kind::call:
            return evaluate_call(e);
        case Kind::filter: {
            const Value value = part(0);
            const Arguments arguments = evaluate_arguments(e);
            return failed() ? Value{} : filter(e.name, value, arguments);
        }
        case Kind::test: {
            const Value value = part(0);
            const Arguments arguments = evaluate_arguments(e);
            return !failed() && test(e.name, value, arguments);
        }
        case Kind::negate:
        case Kind::positive:
            return evaluate_negative(e);
        case Kind::logical_not:
            return !truth(part(0));
        case Kind::logical_and: {
            Value left = part(0);
            return truth(left) ? part(1) : left;
        }
        case Kind::logical_or: {
            Value left = part(0);
            return truth(left) ? left : part(1);
        }
        case Kind::binary:
            return evaluate_binary(e);
        case Kind::concat:
            return evaluate_concat(e);
        case Kind::compare:
            return evaluate_compare(e);
        case Kind::condition:
            if (truth(part(0))) return part(1);
            return e.parts[2] == nullptr ? Value{} : part(2);
    }
    return {};
}

Value Machine::evaluate_name(const Expression& e) {
    for (const Scope* scope = scope_; scope != nullptr; scope = scope->around) {
        for (const auto& [name, value] : scope->names) {
            if (name == e.name) return value;
        }
    }
    return Undefined{e.name};
}

std::vector<Value> Machine::evaluate_all(const std::vector<ExpressionPtr>& expressions) {
    std::vector<Value> values;
    values.reserve(expressions.size());
    for (const auto& e : expressions) values.push_back(evaluate(*e));
    return values;
}

Value Machine::evaluate_dict(const Expression& e) {
    Dict made;
    for (size_t i = 0; i + 1 < e.parts.size(); i += 2) {
        Value key = evaluate(*e.parts[i]);
        if (as_list(key) != nullptr || as_dict(key) != nullptr) return fail("a dict's key must be a plain value");
        if (!charge(1 + made.items.size() / 8)) return {};
        made.set(std::move(key), evaluate(*e.parts[i + 1]));
    }
    return dict(std::move(made));
}

Value Machine::evaluate_slice(const Expression& e) {
    const Value of = evaluate(*e.parts[0]);
    const auto bound = [&](size_t i) { return e.parts[i] == nullptr ? Value(None{}) : evaluate(*e.parts[i]); };
    const Value begin = bound(1), end = bound(2), step = bound(3);
    line_ = e.line;
    return failed() ? Value{} : slice(of, begin, end, step);
}

Arguments Machine::evaluate_arguments(const Expression& e) {
    Arguments arguments;
    arguments.positional = evaluate_all(e.positional);
    if (e.spread != nullptr) {
        for (Value& v : iterate(evaluate(*e.spread))) arguments.positional.push_back(std::move(v));
    }
    for (const auto& [name, value] : e.named) arguments.named.emplace_back(name, evaluate(*value));
    if (e.spread_named != nullptr) {
        const Value more = evaluate(*e.spread_named);
        if (const Dict* dict = as_dict(more)) {
            for (const auto& [key, value] : dict->items) arguments.named.emplace_back(to_text(key).bytes(), value);
        } else {
            fail("** needs a dict");
        }
    }
    line_ = e.line;
    return arguments;
}

Value Machine::evaluate_call(const Expression& e) {
    const Value callee = evaluate(*e.parts[0]);
    const Arguments arguments = evaluate_arguments(e);
    return failed() ? Value{} : call(callee, arguments);
}

Value Machine::evaluate_negative(const Expression& e) {
    const Value value = evaluate(*e.parts[0]);
    if (failed()) return {};
    if (!is_number(value))
        return fail(
            fmt::format("bad operand type for unary {}: '{}'", e.kind == Kind::negate ? '-' : '+', type_name(value)));
    if (holds<double>(value)) return e.kind == Kind::negate ? -to_real(value) : to_real(value);
    return e.kind == Kind::negate ? binary("-", int64_t{0}, value) : Value(to_integer(value));
}

Value Machine::evaluate_binary(const Expression& e) {
    const Value left = evaluate(*e.parts[0]), right = evaluate(*e.parts[1]);
    line_ = e.line;
    return failed() ? Value{} : binary(e.name, left, right);
}

Value Machine::evaluate_concat(const Expression& e) {
    MarkedText out;
    for (const auto& p : e.parts) {
        const MarkedText more = to_text(evaluate(*p));
        if (!charge_growth(out.size(), more.size())) return {};
        out.append(more);
    }
    return text(std::move(out));
}

Value Machine::evaluate_compare(const Expression& e) {
    Value left = evaluate(*e.parts[0]);
    for (size_t i = 0; i < e.operators.size(); i++) {
        Value right = evaluate(*e.parts[i + 1]);
        line_ = e.line;
        if (failed() || !compare(e.operators[i], left, right)) return false;
        left = std::move(right);
    }
    return true;
}

Value Machine::loop_attribute(const Loop& loop, std::string_view name) {
    const auto n = static_cast<int64_t>(loop.items->items.size()), i = static_cast<int64_t>(loop.index0);
    if (name == "index") return i + 1;
    if (name == "index0") return i;
    if (name == "revindex") return n - i;
    if (name == "revindex0") return n - i - 1;
    if (name == "first") return i == 0;
    if (name == "last") return i + 1 == n;
    if (name == "length") return n;
    if (name == "depth") return int64_t{1};  // counts recursion of a loop into itself, which is not supported
    if (name == "depth0") return int64_t{0};
    if (name == "previtem" && i > 0) return loop.items->items[loop.index0 - 1];
    if (name == "nextitem" && i + 1 < n) return loop.items->items[loop.index0 + 1];
    return Undefined{std::string(name)};
}

Value Machine::attribute(const Value& of, std::string_view name) {
    if (failed()) return {};
    see(of);
    if (const auto* undefined = std::get_if<Undefined>(&of))
        return fail(
            fmt::format("'{}' is undefined, so it has no '{}' (template line {})", undefined->name, name, line_));
    if (const auto* space = std::get_if<std::shared_ptr<Namespace>>(&of)) {
        const Value* found = (*space)->find(name);
        return found == nullptr ? Value(Undefined{std::string(name)}) : *found;
    }
    if (const auto* loop = std::get_if<std::shared_ptr<Loop>>(&of)) {
        if (name != "cycle") return loop_attribute(**loop, name);
        return std::make_shared<const Callable>(Callable{Callable::Kind::method, "cycle", of, nullptr, nullptr});
    }
    // Python looks for a method first, so that a key of that name is reached by d["items"] only.
    if (has_method(of, name))
        return std::make_shared<const Callable>(
            Callable{Callable::Kind::method, std::string(name), of, nullptr, nullptr});
    if (const Dict* dict = as_dict(of)) {
        charge(dict->items.size() / 8);
        if (const Value* found = dict->find(name)) return *found;
    }
    return Undefined{std::string(name)};
}

Value Machine::item(const Value& of, const Value& key) {
    if (failed()) return {};
    see(of);
    if (const auto* undefined = std::get_if<Undefined>(&of))
        return fail(fmt::format("'{}' is undefined, so it has no items (template line {})", undefined->name, line_));
    if (const Dict* dict = as_dict(of)) {
        charge(dict->items.size() / 8);
        if (const Value* found = dict->find(key)) return *found;
    }
    const int64_t place = to_integer(key);
    if (const List* list = as_list(of); list != nullptr && is_integer(key)) {
        const auto n = static_cast<int64_t>(list->items.size());
        const int64_t at = place < 0 ? place + n : place;
        return at < 0 || at >= n ? Value(Undefined{std::to_string(place)}) : list->items[static_cast<size_t>(at)];
    }
    if (const MarkedText* source = as_text(of); source != nullptr && is_integer(key)) {
        if (!charge_bytes(source->size())) return {};
        const std::vector<size_t> places = character_places(source->bytes());
        const auto n = static_cast<int64_t>(places.size()) - 1;
        const int64_t at = place < 0 ? place + n : place;
        if (at < 0 || at >= n) return Undefined{std::to_string(place)};
        return text(source->slice(places[static_cast<size_t>(at)], places[static_cast<size_t>(at) + 1]));
    }
    if (const MarkedText* name = as_text(key)) return attribute(of, name->bytes());
    return Undefined{to_text(key).bytes()};
}

Value Machine::call(const Value& callee, const Arguments& arguments) {
    const Level level(*this);
    if (failed()) return {};
    if (const auto* undefined = std::get_if<Undefined>(&callee))
        return fail(fmt::format("'{}' is undefined and cannot be called (template line {})", undefined->name, line_));
    const auto* callable = std::get_if<std::shared_ptr<const Callable>>(&callee);
    if (callable == nullptr)
        return fail(fmt::format("a {} cannot be called (template line {})", type_name(callee), line_));
    switch ((*callable)->kind) {
        case Callable::Kind::function:
            return call_function(*this, (*callable)->name, arguments);
        case Callable::Kind::method:
            return call_method(*this, (*callable)->self, (*callable)->name, arguments);
        default:
            return call_macro(**callable, arguments);
    }
}

}  // namespace cadans::text::jinja
