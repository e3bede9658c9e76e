// The form that a client wants of an answer's text, as it asked for it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cadans::serve {

/// Checked when a grammar is made of it, not before. A value.
struct TextForm {
    enum class Kind : uint8_t { any, json_object, schema, regex, gbnf, lark, choice };
    Kind kind = Kind::any;
    nlohmann::ordered_json schema = {};     ///< of `schema`
    std::string source = {};                ///< of `regex`, `gbnf` and `lark`
    std::vector<std::string> choices = {};  ///< of `choice`: one of these texts
    std::string field = {};                 ///< of the body, for errors
};

}  // namespace cadans::serve
