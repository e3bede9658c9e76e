// A parsed template.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace cadans::text::jinja {

/// An expression. What `name`, `constant` and the parts mean depends on the kind.
struct Expression {
    enum class Kind {
        constant,     // constant
        name,         // name
        list,         // parts
        tuple,        // parts
        dict,         // parts: key, value, key, value …
        attribute,    // parts[0].name
        item,         // parts[0][parts[1]]
        slice,        // parts[0][parts[1]:parts[2]:parts[3]], absent ones null
        call,         // parts[0](arguments)
        filter,       // parts[0]|name(arguments)
        test,         // parts[0] is name(arguments)
        negate,       // -parts[0]
        positive,     // +parts[0]
        logical_not,  // not parts[0]
        logical_and,  // parts[0] and parts[1]
        logical_or,   // parts[0] or parts[1]
        binary,       // parts[0] name parts[1]: + - * / // % **
        concat,       // parts joined by ~
        compare,      // parts[0] operators[0] parts[1] operators[1] parts[2] …
        condition,    // parts[1] if parts[0] else parts[2], which may be null
    };

    Kind kind;
    uint32_t line = 0;
    uint32_t height = 1;  // of the tree; bounded, so that walking it is
    std::string name = {};
    Value constant = {};
    std::vector<std::unique_ptr<Expression>> parts = {};
    std::vector<std::string> operators = {};

    // Arguments of call, filter and test.
    std::vector<std::unique_ptr<Expression>> positional = {};
    std::vector<std::pair<std::string, std::unique_ptr<Expression>>> named = {};
    std::unique_ptr<Expression> spread = {}, spread_named = {};  // *parts, **parts
};
using ExpressionPtr = std::unique_ptr<Expression>;

struct Statement;
using Body = std::vector<std::unique_ptr<Statement>>;

struct Macro {
    std::string name;
    std::vector<std::string> parameters;
    std::vector<ExpressionPtr> defaults;  // one a parameter, null where there is none
    Body body;
};

/// A piece of text or a statement.
struct Statement {
    enum class Kind {
        data,       // text
        print,      // expression
        branch,     // branches; the last may have no condition
        loop,       // for targets in expression if condition: body else otherwise
        set,        // targets = expression
        set_block,  // targets = body, through the filters of expression (over the name "")
        macro,      // macro
        call,       // expression is called with macro as its caller()
        filter,     // body through the filters of expression (over the name "")
        with,       // targets = expressions in a scope of their own
        scope,      // body, for blocks that change nothing (generation)
        loop_break,
        loop_continue,
    };

    Kind kind;
    uint32_t line = 0;
    MarkedText text = {};
    ExpressionPtr expression = {}, condition = {};
    std::vector<ExpressionPtr> targets = {};  // names, attributes of namespaces, tuples of names
    std::vector<ExpressionPtr> values = {};
    std::vector<std::pair<ExpressionPtr, Body>> branches = {};
    Body body = {}, otherwise = {};
    std::unique_ptr<Macro> macro = {};
};

}  // namespace cadans::text::jinja
