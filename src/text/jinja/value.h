// What a template computes with: Python's plain values, and nothing that reaches outside.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/marked_text.h"

namespace cadans::text::jinja {

struct List;
struct Dict;
struct Namespace;
struct Loop;
struct Callable;

/// A name without a value, or a key that is not there.
struct Undefined {
    std::string name = {};
};
struct None {};

/// Thread rule: a value; containers are shared and never change once made. No cycles: a namespace, the only thing that
/// changes, is never put into a container or another namespace.
using Value = std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const MarkedText>,
                           std::shared_ptr<List>, std::shared_ptr<Dict>, std::shared_ptr<Namespace>,
                           std::shared_ptr<Loop>, std::shared_ptr<const Callable>>;

using TextPtr = std::shared_ptr<const MarkedText>;
using ListPtr = std::shared_ptr<List>;
using DictPtr = std::shared_ptr<Dict>;

struct List {
    std::vector<Value> items;
    bool tuple = false;
    uint32_t depth = 1;  // containers inside each other, this one included: bounded, so that walking them is
};

struct Dict {
    std::vector<std::pair<Value, Value>> items;  // in the order of insertion
    uint32_t depth = 1;
    int32_t message = -1;  // this is messages[message] of the request

    const Value* find(std::string_view key) const noexcept;
    const Value* find(const Value& key) const noexcept;
    void set(Value key, Value value);  ///< adds or replaces
};

struct Namespace {
    std::vector<std::pair<std::string, Value>> items;

    Value* find(std::string_view name) noexcept;
};

/// The `loop` of a for statement.
struct Loop {
    ListPtr items;
    size_t index0 = 0;
};

struct Macro;
struct Scope;

/// Something that can be called: a macro, a global function, or a method of a value.
struct Callable {
    enum class Kind { function, method, macro, caller };
    Kind kind = Kind::function;
    std::string name = {};
    Value self = {};               // method: what it belongs to
    const Macro* macro = nullptr;  // macro, caller
    Scope* scope = nullptr;        // macro, caller: where it was defined
};

/// Arguments of a call.
struct Arguments {
    std::vector<Value> positional;
    std::vector<std::pair<std::string, Value>> named;

    /// The argument at this place or of this name; nullptr when neither was given.
    const Value* get(size_t place, std::string_view name) const noexcept;
};

Value make_text(std::string bytes, bool trusted = true);
Value make_text(MarkedText text);

/// How many containers are inside each other here: 0 for plain values.
uint32_t depth_of(const Value& v) noexcept;

template <class T>
bool holds(const Value& value) noexcept {
    return std::holds_alternative<T>(value);
}
inline const MarkedText* as_text(const Value& v) noexcept {
    const auto* p = std::get_if<TextPtr>(&v);
    return p == nullptr ? nullptr : p->get();
}
inline const List* as_list(const Value& v) noexcept {
    const auto* p = std::get_if<ListPtr>(&v);
    return p == nullptr ? nullptr : p->get();
}
inline const Dict* as_dict(const Value& v) noexcept {
    const auto* p = std::get_if<DictPtr>(&v);
    return p == nullptr ? nullptr : p->get();
}
inline bool is_integer(const Value& v) noexcept { return holds<int64_t>(v) || holds<bool>(v); }
inline bool is_number(const Value& v) noexcept { return is_integer(v) || holds<double>(v); }

int64_t to_integer(const Value& v) noexcept;  ///< of an integer or bool; else 0
double to_real(const Value& v) noexcept;      ///< of a number; else 0

bool truth(const Value& v) noexcept;
bool equal(const Value& a, const Value& b) noexcept;

/// Python's name of the type, for messages.
std::string_view type_name(const Value& v) noexcept;

/// A float as Python prints it: the shortest decimals that read back exactly.
std::string real_text(double x);

/// str(v) and repr(v), marks kept.
MarkedText to_text(const Value& v);
MarkedText to_repr(const Value& v);

}  // namespace cadans::text::jinja
