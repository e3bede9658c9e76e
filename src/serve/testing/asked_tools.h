// Tools as a client asks for them, read.
#pragma once

#include <gtest/gtest.h>

#include "serve/dialects/tool_fields.h"

namespace cadans::serve::testing {

inline const nlohmann::ordered_json kTools = nlohmann::ordered_json::parse(R"([
    {"type": "function", "function": {"name": "light.on", "description": "d", "parameters":
        {"type": "object", "properties": {"room": {"enum": ["a", "b"]}}, "required": ["room"], "additionalProperties": false}}},
    {"type": "function", "function": {"name": "now"}}])");

/// Read from a body, which offers kTools where it offers none.
inline ToolUse use_of(nlohmann::ordered_json body) {
    if (!body.contains("tools")) body["tools"] = kTools;
    FieldReader reader(body);
    ToolUse use;
    read_tools(reader, use);
    EXPECT_FALSE(reader.failed());
    return use;
}

/// Why it is refused.
inline Error error_of(const nlohmann::ordered_json& body) {
    FieldReader reader(body);
    ToolUse use;
    read_tools(reader, use);
    EXPECT_TRUE(reader.failed()) << body.dump();
    return reader.failed() ? reader.take_error() : Error{};
}

}  // namespace cadans::serve::testing
