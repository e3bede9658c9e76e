// JSON Schema as a grammar: answers that are valid, or a refusal that names the place.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "grammar/grammar.h"

namespace cadans::grammar {

struct SchemaOptions {
    /// Whether an object may have properties that its schema does not name but allows by saying nothing. Off: such are
    /// written only where `additionalProperties` or `patternProperties` ask for them, or no property is named at all.
    bool undeclared_properties = false;
    /// Empty: values are JSON. Else they are JSON whose strings stand between two of these as they are, without escapes
    /// and without this mark inside, and whose names are bare: of letters, digits, _ . - $ and what is beyond ASCII.
    /// ASCII, of at least two characters.
    std::string quote = {};
};

/// Drafts 7 and 2020-12; without `$schema` it is 2020-12. What the grammar writes always validates; it does not write
/// everything that would: properties come in the schema's order, white space is that of json_text.h, numbers and
/// strings have ends. A keyword that is not kept exactly is refused, whatever it would change; annotations are not
/// read.
///
/// Errors  bad_input for what is no schema or nothing satisfies, unsupported for what cannot be kept; `where` is the
///         place as a JSON pointer with its #: "#/properties/size/pattern"
/// Cost    bounded by limits; milliseconds for usual schemas
Result<Grammar> schema_grammar(const nlohmann::ordered_json& schema, SchemaOptions options = {},
                               const Limits& limits = {});

/// The same from text, which may be no JSON at all.
Result<Grammar> schema_text_grammar(std::string_view schema, SchemaOptions options = {}, const Limits& limits = {});

/// The same as a rule among others. What only shows when those are compiled names its place by the rule's name.
Result<RuleId> add_schema(Rules& rules, const nlohmann::ordered_json& schema, SchemaOptions options = {});

}  // namespace cadans::grammar
