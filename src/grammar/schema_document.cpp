#include "grammar/schema_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/hex.h"

namespace cadans::grammar {
namespace {

enum class Form : uint8_t { any, schema, schemas, schema_map, count, number, text, boolean, names, types, values };

struct Keyword {
    std::string_view name;
    Form form;
    bool kept;  // false: an annotation, or read elsewhere
};

constexpr std::array kKeywords = std::to_array<Keyword>({
    {"type", Form::types, true},
    {"enum", Form::values, true},
    {"const", Form::any, true},
    {"properties", Form::schema_map, true},
    {"patternProperties", Form::schema_map, true},
    {"additionalProperties", Form::schema, true},
    {"propertyNames", Form::schema, true},
    {"required", Form::names, true},
    {"minProperties", Form::count, true},
    {"maxProperties", Form::count, true},
    {"items", Form::any, true},
    {"prefixItems", Form::schemas, true},
    {"additionalItems", Form::schema, true},
    {"minItems", Form::count, true},
    {"maxItems", Form::count, true},
    {"uniqueItems", Form::boolean, true},
    {"minLength", Form::count, true},
    {"maxLength", Form::count, true},
    {"pattern", Form::text, true},
    {"format", Form::text, true},
    {"minimum", Form::number, true},
    {"maximum", Form::number, true},
    {"exclusiveMinimum", Form::number, true},
    {"exclusiveMaximum", Form::number, true},
    {"multipleOf", Form::number, true},
    {"allOf", Form::schemas, true},
    {"anyOf", Form::schemas, true},
    {"oneOf", Form::schemas, true},
    {"not", Form::schema, true},
    {"$ref", Form::text, true},
    {"$schema", Form::text, false},
    {"$id", Form::text, false},
    {"$anchor", Form::text, false},
    {"$defs", Form::any, false},
    {"definitions", Form::any, false},
    {"$comment", Form::any, false},
    {"title", Form::any, false},
    {"description", Form::any, false},
    {"default", Form::any, false},
    {"example", Form::any, false},
    {"examples", Form::any, false},
    {"deprecated", Form::any, false},
    {"readOnly", Form::any, false},
    {"writeOnly", Form::any, false},
    {"contentEncoding", Form::any, false},
    {"contentMediaType", Form::any, false},
    {"contentSchema", Form::any, false},
    {"discriminator", Form::any, false},
    {"nullable", Form::any, false},  // OpenAPI's: it only allows more
    {"externalDocs", Form::any, false},
    {"xml", Form::any, false},
});

// What some draft of JSON Schema holds values to, and is not kept here. "if", "then" and "else" are looked at by
// themselves.
constexpr std::array<std::string_view, 13> kNotKept = {"contains",         "minContains",           "maxContains",
                                                       "dependencies",     "dependentRequired",     "dependentSchemas",
                                                       "unevaluatedItems", "unevaluatedProperties", "$dynamicRef",
                                                       "$recursiveRef",    "divisibleBy",           "disallow",
                                                       "extends"};

constexpr std::array<std::string_view, 7> kTypes = {"null",   "boolean", "integer", "number",
                                                    "string", "array",   "object"};

bool is_schema(const Json& json) { return json.is_object() || json.is_boolean(); }

bool is_count(const Json& json) {
    if (json.is_number_integer()) return json.is_number_unsigned() || json.get<int64_t>() >= 0;
    if (!json.is_number_float()) return false;
    const double value = json.get<double>();
    return value >= 0 && value <= 9e15 && value == static_cast<double>(static_cast<int64_t>(value));
}

bool is_type(const Json& json) {
    return json.is_string() &&
           std::find(kTypes.begin(), kTypes.end(), json.get_ref<const std::string&>()) != kTypes.end();
}

const char* wrong_form(Form form, const Json& json) {
    const auto all = [&](auto&& good) { return std::all_of(json.begin(), json.end(), good); };
    switch (form) {
        case Form::any:
            return nullptr;
        case Form::schema:
            return is_schema(json) ? nullptr : "must be a schema";
        case Form::schemas:
            return json.is_array() && !json.empty() && all(is_schema) ? nullptr
                                                                      : "must be a list of schemas, not empty";
        case Form::schema_map:
            return json.is_object() && all(is_schema) ? nullptr : "must be an object of schemas";
        case Form::count:
            return is_count(json) ? nullptr : "must be a whole number from 0";
        case Form::number:
            return json.is_number() ? nullptr : "must be a number";
        case Form::text:
            return json.is_string() ? nullptr : "must be a string";
        case Form::boolean:
            return json.is_boolean() ? nullptr : "must be true or false";
        case Form::names:
            return json.is_array() && all([](const Json& j) { return j.is_string(); }) ? nullptr
                                                                                       : "must be a list of names";
        case Form::types:
            return is_type(json) || (json.is_array() && !json.empty() && all(is_type))
                       ? nullptr
                       : "must be a type of JSON, or a list of them";
        case Form::values:
            return json.is_array() && !json.empty() ? nullptr : "must be a list of values, not empty";
    }
    return nullptr;
}

/// Without what a writer may be mistaken in: case, underscores and hyphens.
std::string plain_name(std::string_view key) {
    std::string out;
    for (const char c : key)
        if (c != '_' && c != '-') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return out;
}

/// The keyword that a name without meaning was meant to be, by all appearance.
std::string_view meant(std::string_view key) {
    const std::string plain = plain_name(key);
    for (const Keyword& keyword : kKeywords)
        if (keyword.kept && plain_name(keyword.name) == plain) return keyword.name;
    for (const std::string_view name : kNotKept)
        if (plain_name(name) == plain) return name;
    return {};
}

std::string escaped(std::string_view part) {
    std::string out;
    for (const char c : part) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return out;
}

std::optional<std::string> unescaped(std::string_view part) {
    std::string out;
    for (size_t i = 0; i < part.size(); i++) {
        const int high = part[i] == '%' && i + 2 < part.size() ? hex_digit(part[i + 1]) : -1;
        const int low = high >= 0 ? hex_digit(part[i + 2]) : -1;
        if (low >= 0) {
            out += static_cast<char>(high * 16 + low);
            i += 2;
        } else {
            out += part[i];
        }
    }
    std::string plain;
    for (size_t i = 0; i < out.size(); i++) {
        if (out[i] != '~') {
            plain += out[i];
        } else if (i + 1 < out.size() && (out[i + 1] == '0' || out[i + 1] == '1')) {
            plain += out[++i] == '0' ? '~' : '/';
        } else {
            return std::nullopt;
        }
    }
    return plain;
}

/// What a walk over the whole document, data included, has to know before anything is compiled.
struct Survey {
    size_t nodes = 0, depth = 0;
    bool inner_id = false, reference = false;
    std::map<std::string, std::vector<const Json*>> anchors;
};

Survey survey(const Json& root) {
    Survey out;
    std::vector<std::pair<const Json*, size_t>> work = {{&root, 1}};
    while (!work.empty()) {
        const auto [json, depth] = work.back();
        work.pop_back();
        out.nodes++;
        out.depth = std::max(out.depth, depth);
        if (json->is_object()) {
            for (const auto& [key, value] : json->items()) {
                out.inner_id |= key == "$id" && value.is_string() && json != &root;
                out.reference |= key == "$ref";
                if (key == "$anchor" && value.is_string()) out.anchors[value.get<std::string>()].push_back(json);
            }
        }
        if (json->is_structured())
            for (const Json& child : *json) work.emplace_back(&child, depth + 1);
    }
    return out;
}

}  // namespace

Error SchemaDocument::refused(Place place, std::string_view keyword, std::string why) const {
    return bad_input(std::move(why), name(place) + (keyword.empty() ? "" : "/" + escaped(keyword)));
}
Error SchemaDocument::unsupported(Place place, std::string_view keyword, std::string why) const {
    return cadans::unsupported(std::move(why), name(place) + (keyword.empty() ? "" : "/" + escaped(keyword)));
}

Result<SchemaDocument> SchemaDocument::open(const Json& root, const Limits& limits) {
    const Survey seen = survey(root);
    if (seen.depth > size_t{limits.depth} * 4)
        return bad_input(fmt::format("the schema is nested deeper than {}", limits.depth * 4), "#");
    if (seen.nodes > limits.source_bytes) return bad_input("the schema is too large", "#");
    if (!is_schema(root)) return bad_input("a schema must be an object, true or false", "#");
    SchemaDocument out(root, limits);
    if (root.is_object()) {
        if (const auto at = root.find("$schema"); at != root.end() && at->is_string()) {
            const auto& draft = at->get_ref<const std::string&>();
            if (draft.find("//json-schema.org/draft-07/schema") != std::string::npos)
                out.draft_ = Draft::draft7;
            else if (draft.find("//json-schema.org/draft/2020-12/schema") == std::string::npos)
                return cadans::unsupported(fmt::format("'{}' is neither draft 7 nor 2020-12", draft), "#/$schema");
        }
        if (const auto at = root.find("$id"); at != root.end() && at->is_string()) out.id_ = at->get<std::string>();
    }
    if (seen.inner_id && seen.reference)
        return cadans::unsupported("references in a document with a $id inside are not supported", "#");
    auto first = out.place(root, "#");
    if (!first) return std::move(first).error();
    return out;
}

Result<SchemaDocument::Place> SchemaDocument::place(const Json& schema, std::string name) {
    if (const auto at = known_.find(&schema); at != known_.end()) return at->second;
    const auto place = static_cast<Place>(schemas_.size());
    schemas_.push_back({&schema, std::move(name)});
    if (Status good = check(place); !good) return std::move(good).error();
    known_[&schema] = place;
    return place;
}

Result<SchemaDocument::Place> SchemaDocument::below(Place parent, const std::string& path, const Json& schema) {
    return place(schema, name(parent) + "/" + path);
}

Status SchemaDocument::check(Place place) const {
    const Json& schema = at(place);
    if (schema.is_boolean()) return Ok{};
    if (!schema.is_object()) return refused(place, "", "a schema must be an object, true or false");
    // Next to a $ref, draft 7 reads nothing else.
    const bool only_ref = draft_ == Draft::draft7 && schema.contains("$ref");
    for (const auto& [key, value] : schema.items()) {
        if (only_ref && key != "$ref") continue;
        const auto at = std::ranges::find(kKeywords, std::string_view(key), &Keyword::name);
        const bool conditional = key == "then" || key == "else";
        if (conditional && !schema.contains("if")) continue;
        if (key == "if" && !schema.contains("then") && !schema.contains("else")) continue;
        if (at == kKeywords.end()) {
            if (key == "if" || conditional || std::ranges::find(kNotKept, std::string_view(key)) != kNotKept.end())
                return unsupported(place, key, fmt::format("the keyword '{}' is not supported", key));
            if (const std::string_view keyword = meant(key); !keyword.empty())
                return refused(place, key, fmt::format("'{}' means nothing; the keyword is '{}'", key, keyword));
            continue;  // as every draft has it, a name that none of them knows is an annotation
        }
        if (!at->kept) continue;
        if (const char* wrong = wrong_form(at->form, value))
            return refused(place, key, fmt::format("'{}' {}", key, wrong));
        if (draft_ == Draft::draft2020 && key == "additionalItems")
            return unsupported(place, key,
                               "'additionalItems' belongs to draft 7; 2020-12 has 'prefixItems' and 'items'");
        if (draft_ == Draft::draft7 && key == "prefixItems")
            return unsupported(place, key, "'prefixItems' belongs to 2020-12; draft 7 has a list in 'items'");
        if (key == "items" && !is_schema(value)) {
            if (draft_ == Draft::draft2020 || !value.is_array() || !std::all_of(value.begin(), value.end(), is_schema))
                return refused(place, key,
                               "'items' must be a schema (a list of schemas is draft 7's form; name it in $schema)");
        }
    }
    return Ok{};
}

Result<SchemaDocument::Place> SchemaDocument::target(Place from, const std::string& reference) {
    std::string_view rest = reference;
    if (!id_.empty() && rest.starts_with(id_) &&
        (rest.size() == id_.size() || rest[id_.size()] == '#' || id_.ends_with('#')))
        rest.remove_prefix(id_.size());
    if (rest.starts_with('#'))
        rest.remove_prefix(1);
    else if (!rest.empty())
        return unsupported(from, "$ref", fmt::format("'{}' is not inside this schema", reference));
    const Json* json = &root_;
    std::string name = "#";
    if (!rest.empty() && rest[0] != '/') {
        const auto found = survey(root_).anchors;
        const auto at = found.find(std::string(rest));
        if (at == found.end() || at->second.size() != 1)
            return unsupported(from, "$ref", fmt::format("'{}' does not name one place of this schema", reference));
        return place(*at->second[0], reference);
    }
    while (!rest.empty()) {
        rest.remove_prefix(1);
        const size_t end = std::min(rest.find('/'), rest.size());
        const auto part = unescaped(rest.substr(0, end));
        const std::string_view raw = rest.substr(0, end);
        rest.remove_prefix(end);
        name += "/" + std::string(raw);
        if (part && json->is_object() && json->contains(*part)) {
            json = &(*json)[*part];
            continue;
        }
        const bool digits =
            part && !part->empty() && part->size() < 7 && part->find_first_not_of("0123456789") == std::string::npos;
        if (digits && json->is_array() && std::stoul(*part) < json->size()) {
            json = &(*json)[std::stoul(*part)];
            continue;
        }
        return refused(from, "$ref", fmt::format("'{}' names nothing in this schema", reference));
    }
    return place(*json, name);
}

}  // namespace cadans::grammar
