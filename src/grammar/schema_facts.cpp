#include "grammar/schema_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "grammar/formats.h"

namespace cadans::grammar {
namespace {

constexpr uint64_t kMultipleMax = 1'000;

Decimal decimal(const Json& number) { return Decimal::read(number.dump()).value_or(Decimal{}); }

uint64_t count(const Json& number) {
    return number.is_number_float() ? static_cast<uint64_t>(number.get<double>()) : number.get<uint64_t>();
}

class Reader {
  public:
    Reader(const SchemaDocument& document, Facts& facts) : document_(document), facts_(facts) {}

    Status read(SchemaDocument::Place place) {
        const Json& schema = document_.at(place);
        if (schema.is_boolean()) {
            facts_.never |= !schema.get<bool>();
            return Ok{};
        }
        if (document_.draft() == Draft::draft7 && schema.contains("$ref")) return Ok{};
        for (const auto& [key, value] : schema.items())
            if (Status done = keyword(place, key, value); !done) return done;
        return Ok{};
    }

  private:
    Status keyword(SchemaDocument::Place place, const std::string& key, const Json& value) {
        if (key == "type") facts_.types &= types_of(value);
        if (key == "enum") {
            std::vector<const Json*> values;
            for (const Json& one : value) values.push_back(&one);
            among(values);
        }
        if (key == "const") among({&value});
        if (key == "minimum") facts_.number.at_least(decimal(value), false);
        if (key == "maximum") facts_.number.at_most(decimal(value), false);
        if (key == "exclusiveMinimum") facts_.number.at_least(decimal(value), true);
        if (key == "exclusiveMaximum") facts_.number.at_most(decimal(value), true);
        if (key == "multipleOf") return multiple(place, value);
        if (key == "minLength") facts_.length_min = std::max(facts_.length_min, count(value));
        if (key == "maxLength") facts_.length_max = std::min(facts_.length_max, count(value));
        if (key == "pattern") facts_.patterns.push_back({value.get<std::string>(), place, "pattern"});
        if (key == "format") return format(place, value.get<std::string>());
        if (key == "minItems") facts_.items_min = std::max(facts_.items_min, count(value));
        if (key == "maxItems") facts_.items_max = std::min(facts_.items_max, count(value));
        if (key == "uniqueItems") facts_.unique_items |= value.get<bool>();
        if (key == "minProperties") facts_.properties_min = std::max(facts_.properties_min, count(value));
        if (key == "maxProperties") facts_.properties_max = std::min(facts_.properties_max, count(value));
        if (key == "required")
            for (const Json& name : value)
                if (std::find(facts_.required.begin(), facts_.required.end(), name.get<std::string>()) ==
                    facts_.required.end())
                    facts_.required.push_back(name.get<std::string>());
        if (key == "not") return exclude(place, value);
        return Ok{};
    }

    void among(const std::vector<const Json*>& values) {
        std::vector<const Json*> left;
        for (const Json* value : values) {
            const auto same = [&](const Json* other) { return same_value(*value, *other); };
            const bool before = !facts_.only_values || std::any_of(facts_.values.begin(), facts_.values.end(), same);
            if (before && std::none_of(left.begin(), left.end(), same)) left.push_back(value);
        }
        facts_.values = std::move(left);
        facts_.only_values = true;
    }

    Status multiple(SchemaDocument::Place place, const Json& value) {
        const double number = value.get<double>();
        if (number <= 0) return document_.refused(place, "multipleOf", "'multipleOf' must be above 0");
        if (number != std::floor(number) || number > static_cast<double>(kMultipleMax))
            return document_.unsupported(place, "multipleOf",
                                         fmt::format("'multipleOf' is kept for whole numbers up to {}", kMultipleMax));
        const uint64_t all = std::lcm(facts_.number.multiple, static_cast<uint64_t>(number));
        if (all > kMultipleMax)
            return document_.unsupported(place, "multipleOf", "these multiples together are too large");
        facts_.number.multiple = all;
        facts_.number.integers = true;
        return Ok{};
    }

    Status format(SchemaDocument::Place place, const std::string& name) {
        const auto pattern = format_pattern(name);
        if (pattern) facts_.patterns.push_back({std::string(*pattern), place, "format"});
        if (name == "int32" || name == "int64") {
            const bool small = name == "int32";
            facts_.number.at_least(*Decimal::read(small ? "-2147483648" : "-9223372036854775808"), false);
            facts_.number.at_most(*Decimal::read(small ? "2147483647" : "9223372036854775807"), false);
        } else if (!pattern && !is_mere_hint(name)) {
            return document_.unsupported(place, "format", fmt::format("the format '{}' is not supported", name));
        }
        return Ok{};
    }

    /// `not` is kept where it takes away whole types.
    Status exclude(SchemaDocument::Place place, const Json& schema) {
        if (schema.is_boolean()) {
            facts_.never |= schema.get<bool>();
            return Ok{};
        }
        if (schema.empty()) {
            facts_.never = true;
            return Ok{};
        }
        if (schema.size() == 1 && schema.contains("type")) {
            const Json& type = schema["type"];
            if (type.is_string() || (type.is_array() && std::all_of(type.begin(), type.end(),
                                                                    [](const Json& j) { return j.is_string(); }))) {
                facts_.types &= static_cast<uint8_t>(~types_of(type));
                return Ok{};
            }
        }
        return document_.unsupported(place, "not", "'not' is kept for {\"type\": …} alone");
    }

    const SchemaDocument& document_;
    Facts& facts_;
};

}  // namespace

Types type_of(const Json& value) {
    switch (value.type()) {
        case Json::value_t::null:
            return kNull;
        case Json::value_t::boolean:
            return kBoolean;
        case Json::value_t::string:
            return kString;
        case Json::value_t::array:
            return kArray;
        case Json::value_t::object:
            return kObject;
        default:
            return decimal(value).whole() ? kInteger : kFraction;
    }
}

Types types_of(const Json& keyword) {
    uint8_t types = 0;
    const auto add = [&](const std::string& name) {
        if (name == "null") types |= kNull;
        if (name == "boolean") types |= kBoolean;
        if (name == "integer") types |= kInteger;
        if (name == "number") types |= kInteger | kFraction;
        if (name == "string") types |= kString;
        if (name == "array") types |= kArray;
        if (name == "object") types |= kObject;
    };
    if (keyword.is_string()) add(keyword.get<std::string>());
    if (keyword.is_array())
        for (const Json& name : keyword) add(name.get<std::string>());
    return static_cast<Types>(types);
}

Result<Facts> facts_of(const SchemaDocument& document, const std::vector<SchemaDocument::Place>& places) {
    Facts facts;
    facts.places = places;
    Reader reader(document, facts);
    for (const auto place : places)
        if (Status done = reader.read(place); !done) return std::move(done).error();
    return facts;
}

bool same_value(const Json& a, const Json& b) {
    if (a.is_number() && b.is_number()) return compare(decimal(a), decimal(b)) == 0;
    if (a.type() != b.type()) return false;
    if (a.is_array()) return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same_value);
    if (!a.is_object()) return a == b;
    if (a.size() != b.size()) return false;
    for (const auto& [key, value] : a.items())
        if (!b.contains(key) || !same_value(value, b[key])) return false;
    return true;
}

}  // namespace cadans::grammar
