// JSON in and out of template values.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "text/jinja/value.h"

namespace cadans::text::jinja {

class Machine;

/// The value of a client's JSON; all of its text is untrusted.
Value from_json(Machine& machine, const nlohmann::ordered_json& json);

/// The `messages` of a request: each knows its place, and well-known role names count as the template's own text, for
/// there are templates that build control tokens from them ("<|" ~ role ~ "|>").
Value messages_from_json(Machine& machine, const nlohmann::ordered_json& messages);

struct JsonStyle {
    int64_t indent = -1;  ///< spaces a level; negative: one line
    bool ascii = false;   ///< \u escapes for all else
    bool sorted = false;
    std::string item_separator = ", ", key_separator = ": ";
};

/// As Python's json.dumps. Fails the machine for what JSON cannot say.
MarkedText to_json(Machine& machine, const Value& value, const JsonStyle& style);

}  // namespace cadans::text::jinja
