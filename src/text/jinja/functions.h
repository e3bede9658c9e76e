// What templates may call: filters, tests, global functions and the methods of Python's plain values.
#pragma once

#include <span>
#include <string_view>

#include "text/jinja/value.h"

namespace cadans::text::jinja {

class Machine;

using Filter = Value (*)(Machine& machine, const Value& value, const Arguments& arguments);

struct NamedFilter {
    std::string_view name;
    Filter filter;
};

std::span<const NamedFilter> text_filters() noexcept;  ///< filters.cpp's tables, by what they work on
std::span<const NamedFilter> list_filters() noexcept;
std::span<const NamedFilter> value_filters() noexcept;

/// Whether a value of this type has a method of this name, as Python has it.
bool has_method(const Value& of, std::string_view name) noexcept;
Value call_method(Machine& machine, const Value& of, std::string_view name, const Arguments& arguments);

/// range, dict, namespace, raise_exception, strftime_now.
std::span<const std::string_view> function_names() noexcept;
Value call_function(Machine& machine, std::string_view name, const Arguments& arguments);

}  // namespace cadans::text::jinja
