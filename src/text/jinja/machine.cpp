#include "text/jinja/machine.h"

#include <fmt/format.h>

#include <algorithm>

namespace cadans::text::jinja {
namespace {

// Every level costs a few hundred bytes of stack, ten times that under a sanitizer.
constexpr uint32_t kRunDepthMax = 600;
constexpr uint32_t kContainerDepthMax = 200;

}  // namespace

Machine::Machine(const TemplateLimits& limits, int64_t now_unix_seconds)
    : limits_(limits), now_(now_unix_seconds), steps_left_(limits.steps) {
    scope_ = &open_scope(nullptr);
}

void Machine::define(std::string_view name, Value value) { bind(*scope_, name, std::move(value)); }

Result<MarkedText> Machine::run(const Body& body) {
    MarkedText out;
    out_ = &out;
    open_scope(scope_);
    scope_ = &scopes_.back();
    execute(body);
    if (error_) return *error_;
    return out;
}

Value Machine::fail(std::string message, ErrorCode code) {
    if (!error_) error_ = Error{code, std::move(message), where()};
    return {};
}

std::string Machine::where() const {
    for (size_t i = loop_messages_.size(); i-- > 0;) {
        if (loop_messages_[i] >= 0) return fmt::format("messages[{}]", loop_messages_[i]);
    }
    return seen_message_ >= 0 ? fmt::format("messages[{}]", seen_message_) : std::string();
}

void Machine::see(const Value& value) {
    const Dict* dict = as_dict(value);
    if (dict != nullptr && dict->message >= 0) seen_message_ = dict->message;
}

bool Machine::charge(uint64_t steps) {
    if (failed()) return false;
    if (steps > steps_left_) {
        steps_left_ = 0;
        fail(fmt::format("the chat template takes more than {} steps (near line {})", limits_.steps, line_),
             ErrorCode::too_large);
        return false;
    }
    steps_left_ -= steps;
    return true;
}

bool Machine::charge_bytes(size_t bytes) { return charge_growth(0, bytes); }

bool Machine::charge_growth(size_t bytes, size_t more) {
    if (failed()) return false;
    if (bytes + more > limits_.output_bytes) {
        fail(fmt::format("the chat template makes a text of more than {} bytes", limits_.output_bytes),
             ErrorCode::too_large);
        return false;
    }
    return charge(1 + more / 64);
}

void Machine::enter() {
    if (++depth_ > kRunDepthMax)
        fail(fmt::format("the chat template nests calls deeper than {} levels", kRunDepthMax), ErrorCode::too_large);
    charge(1);
}

Value Machine::text(MarkedText text) {
    if (!charge_bytes(text.size())) return {};
    return make_text(std::move(text));
}

Value Machine::list(std::vector<Value> items, bool tuple) {
    if (!charge(1 + items.size())) return {};
    auto made = std::make_shared<List>(List{std::move(items), tuple, 1});
    for (const Value& v : made->items) {
        if (holds<std::shared_ptr<Namespace>>(v) || holds<std::shared_ptr<Loop>>(v))
            return fail(fmt::format("a {} cannot be put into a list", type_name(v)));
        made->depth = std::max(made->depth, depth_of(v) + 1);
    }
    if (made->depth > kContainerDepthMax)
        return fail(fmt::format("lists nested deeper than {} levels", kContainerDepthMax), ErrorCode::too_large);
    return made;
}

Value Machine::dict(Dict dict) {
    if (!charge(1 + dict.items.size())) return {};
    for (const auto& [key, v] : dict.items) {
        if (holds<std::shared_ptr<Namespace>>(v) || holds<std::shared_ptr<Loop>>(v))
            return fail(fmt::format("a {} cannot be put into a dict", type_name(v)));
        dict.depth = std::max(dict.depth, std::max(depth_of(v), depth_of(key)) + 1);
    }
    if (dict.depth > kContainerDepthMax)
        return fail(fmt::format("dicts nested deeper than {} levels", kContainerDepthMax), ErrorCode::too_large);
    return std::make_shared<Dict>(std::move(dict));
}

void Machine::bind(Scope& scope, std::string_view name, Value value) {
    for (auto& [known, held] : scope.names) {
        if (known != name) continue;
        held = std::move(value);
        return;
    }
    scope.names.emplace_back(name, std::move(value));
}

Scope& Machine::open_scope(Scope* around) {
    scopes_.emplace_back();
    scopes_.back().around = around;
    return scopes_.back();
}

void Machine::print(MarkedText text) {
    if (charge_growth(out_->size(), text.size())) out_->append(text);
}

Machine::Flow Machine::execute(const Body& body) {
    for (const auto& statement : body) {
        if (failed()) break;
        const Flow flow = execute(*statement);
        if (flow != Flow::on) return flow;
    }
    return Flow::on;
}

Machine::Flow Machine::execute(const Statement& statement) {
    const Level level(*this);
    if (failed()) return Flow::on;
    line_ = statement.line;
    using Kind = Statement::Kind;
    switch (statement.kind) {
        case Kind::data:
            print(statement.text);
            return Flow::on;
        case Kind::print:
            print(to_text(evaluate(*statement.expression)));
            return Flow::on;
        case Kind::branch:
            return execute_branch(statement);
        case Kind::loop:
            return execute_loop(statement);
        case Kind::set:
        case Kind::set_block:
            execute_set(statement);
            return Flow::on;
        case Kind::macro:
            bind(*scope_, statement.macro->name,
                 std::make_shared<const Callable>(
                     Callable{Callable::Kind::macro, statement.macro->name, {}, statement.macro.get(), scope_}));
            return Flow::on;
        case Kind::call:
            execute_call(statement);
            return Flow::on;
        case Kind::filter:
            execute_filter(statement);
            return Flow::on;
        case Kind::with: {
            std::vector<Value> values = evaluate_all(statement.values);
            Scope* const outer = scope_;
            scope_ = &open_scope(outer);
            for (size_t i = 0; i < values.size() && i < statement.targets.size(); i++)
                assign(*statement.targets[i], std::move(values[i]));
            const Flow flow = execute(statement.body);
            scope_ = outer;
            return flow;
        }
        case Kind::scope:
            return execute(statement.body);
        case Kind::loop_break:
            return Flow::loop_break;
        case Kind::loop_continue:
            return Flow::loop_continue;
    }
    return Flow::on;
}

Machine::Flow Machine::execute_branch(const Statement& statement) {
    for (const auto& [condition, body] : statement.branches) {
        if (condition == nullptr || truth(evaluate(*condition))) return execute(body);
        if (failed()) break;
    }
    return Flow::on;
}

/// The items for which the loop's own `if` holds.
std::vector<Value> Machine::passing(const Statement& statement, std::vector<Value> items) {
    if (statement.condition == nullptr) return items;
    std::vector<Value> kept;
    Scope* const outer = scope_;
    scope_ = &open_scope(outer);
    for (Value& v : items) {
        assign(statement.targets, v);
        if (truth(evaluate(*statement.condition))) kept.push_back(std::move(v));
        if (failed()) break;
    }
    scope_ = outer;
    return kept;
}

Machine::Flow Machine::execute_loop(const Statement& statement) {
    std::vector<Value> items = passing(statement, iterate(evaluate(*statement.expression)));
    if (failed()) return Flow::on;
    if (items.empty()) return execute_inside(statement.otherwise);
    auto loop = std::make_shared<Loop>();
    loop->items = std::make_shared<List>(List{std::move(items), false, 1});
    Scope* const outer = scope_;
    loop_messages_.push_back(-1);
    for (; loop->index0 < loop->items->items.size(); loop->index0++) {
        if (!charge(4)) break;
        scope_ = &open_scope(outer);
        const Value& v = loop->items->items[loop->index0];
        const Dict* dict = as_dict(v);
        loop_messages_.back() = dict == nullptr ? -1 : dict->message;
        bind(*scope_, "loop", loop);
        assign(statement.targets, v);
        if (execute(statement.body) == Flow::loop_break) break;
        if (failed()) break;
    }
    loop_messages_.pop_back();
    scope_ = outer;
    return Flow::on;
}

Machine::Flow Machine::execute_inside(const Body& body) {
    Scope* const outer = scope_;
    scope_ = &open_scope(outer);
    const Flow flow = execute(body);
    scope_ = outer;
    return flow;
}

MarkedText Machine::captured(const Body& body) {
    MarkedText text;
    MarkedText* const outer = std::exchange(out_, &text);
    execute_inside(body);
    out_ = outer;
    return text;
}

void Machine::execute_set(const Statement& statement) {
    if (statement.kind == Statement::Kind::set) return assign(statement.targets, evaluate(*statement.expression));
    Value value = text(captured(statement.body));
    Scope* const outer = scope_;
    scope_ = &open_scope(outer);
    bind(*scope_, "", std::move(value));  // the filters of the statement are written over this name
    value = evaluate(*statement.expression);
    scope_ = outer;
    assign(statement.targets, std::move(value));
}

void Machine::execute_filter(const Statement& statement) {
    Value value = text(captured(statement.body));
    Scope* const outer = scope_;
    scope_ = &open_scope(outer);
    bind(*scope_, "", std::move(value));
    print(to_text(evaluate(*statement.expression)));
    scope_ = outer;
}

void Machine::execute_call(const Statement& statement) {
    const Value callee = evaluate(*statement.expression->parts[0]);
    Arguments arguments = evaluate_arguments(*statement.expression);
    arguments.named.emplace_back("caller", std::make_shared<const Callable>(Callable{
                                               Callable::Kind::caller, "caller", {}, statement.macro.get(), scope_}));
    if (!failed()) print(to_text(call(callee, arguments)));
}

void Machine::assign(const std::vector<ExpressionPtr>& targets, Value value) {
    if (targets.size() == 1) return assign(*targets[0], std::move(value));
    const std::vector<Value> parts = iterate(value);
    if (failed()) return;
    if (parts.size() != targets.size()) {
        fail(fmt::format("{} values for {} names (template line {})", parts.size(), targets.size(), line_));
        return;
    }
    for (size_t i = 0; i < targets.size(); i++) assign(*targets[i], parts[i]);
}

void Machine::assign(const Expression& target, Value value) {
    if (failed()) return;
    if (target.kind == Expression::Kind::name) return bind(*scope_, target.name, std::move(value));
    const Value owner = evaluate(*target.parts[0]);
    const auto* space = std::get_if<std::shared_ptr<Namespace>>(&owner);
    if (space == nullptr) {
        fail(fmt::format("only attributes of a namespace can be set (template line {})", target.line));
    } else if (holds<std::shared_ptr<Namespace>>(value) || holds<std::shared_ptr<Loop>>(value)) {
        fail(fmt::format("a {} cannot be put into a namespace", type_name(value)));
    } else if (Value* known = (*space)->find(target.name)) {
        *known = std::move(value);
    } else {
        (*space)->items.emplace_back(target.name, std::move(value));
    }
}

Value Machine::call_macro(const Callable& callee, const Arguments& arguments) {
    const Level level(*this);
    if (failed()) return {};
    const Macro& macro = *callee.macro;
    Scope* const outer = std::exchange(scope_, &open_scope(callee.scope));
    std::vector<Value> rest;
    for (size_t i = macro.parameters.size(); i < arguments.positional.size(); i++)
        rest.push_back(arguments.positional[i]);
    for (size_t i = 0; i < macro.parameters.size(); i++) {
        const Value* given = arguments.get(i, macro.parameters[i]);
        Value value = given != nullptr               ? *given
                      : macro.defaults[i] != nullptr ? evaluate(*macro.defaults[i])
                                                     : Value(Undefined{macro.parameters[i]});
        bind(*scope_, macro.parameters[i], std::move(value));
    }
    Dict named;
    for (const auto& [name, value] : arguments.named) {
        if (name == "caller")
            bind(*scope_, "caller", value);
        else if (std::find(macro.parameters.begin(), macro.parameters.end(), name) == macro.parameters.end())
            named.items.emplace_back(make_text(name), value);
    }
    bind(*scope_, "varargs", list(std::move(rest), true));
    bind(*scope_, "kwargs", dict(std::move(named)));
    MarkedText out;
    MarkedText* const outer_out = std::exchange(out_, &out);
    execute(macro.body);
    out_ = outer_out;
    scope_ = outer;
    return text(std::move(out));
}

}  // namespace cadans::text::jinja
