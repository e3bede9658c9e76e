// What several schemas that all hold say together about a value of each type.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "grammar/number_range.h"
#include "grammar/schema_document.h"

namespace cadans::grammar {

/// Types as bits. A number is an integer or it is not: the two are told apart, so that sets of types can be
/// intersected.
enum Types : uint8_t {
    kNull = 1,
    kBoolean = 2,
    kInteger = 4,
    kFraction = 8,
    kString = 16,
    kArray = 32,
    kObject = 64,
    kAnyType = 127
};

Types type_of(const Json& value);
Types types_of(const Json& keyword);  ///< of the value of `type`

/// Places whose keywords hold together, references and choices already followed.
struct Facts {
    uint8_t types = kAnyType;
    std::vector<const Json*> values = {};       ///< those that an `enum` or `const` leaves, where there is one
    bool only_values = false;                   ///< there is one
    std::vector<SchemaDocument::Place> places;  ///< all of them
    NumberRange number;
    struct Search {
        std::string pattern;  ///< searched for in a string
        SchemaDocument::Place place;
        const char* keyword;  ///< that asks for it
    };
    std::vector<Search> patterns;
    uint64_t length_min = 0, length_max = UINT64_MAX;
    uint64_t items_min = 0, items_max = UINT64_MAX;
    uint64_t properties_min = 0, properties_max = UINT64_MAX;
    std::vector<std::string> required;  ///< each once
    bool never = false;                 ///< no value at all
    bool unique_items = false;
};

/// Errors  unsupported for what the keywords say and facts cannot (fractions in multipleOf, an unknown format, most of
///         `not`); the place is in `where`
Result<Facts> facts_of(const SchemaDocument& document, const std::vector<SchemaDocument::Place>& places);

/// Whether two JSON values are equal as JSON Schema means it: 1 is 1.0, the order of names does not matter.
bool same_value(const Json& a, const Json& b);

}  // namespace cadans::grammar
