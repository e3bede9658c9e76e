#include "serve/dialects/form_fields.h"

#include <algorithm>
#include <array>

#include "serve/dialects/common_fields.h"

namespace cadans::serve {

namespace {

using Kind = TextForm::Kind;

/// Takes the forms that fields ask for; a second one is an error.
class FormReader {
  public:
    FormReader(FieldReader& reader, TextForm& out) : reader_(reader), out_(out) {}

    void take(TextForm form) {
        if (out_.kind != Kind::any)
            return reader_.fail(bad_input(form.field + ": " + out_.field + " asks for a form already", form.field));
        out_ = std::move(form);
    }
    void schema(const Json& value, std::string field) {
        if (!value.is_object() && !value.is_boolean())
            return reader_.fail(bad_input(field + ": a schema was expected, got " + describe(value), field));
        take({.kind = Kind::schema, .schema = value, .field = std::move(field)});
    }
    void text(Kind kind, const Json& value, std::string field) {
        if (!value.is_string())
            return reader_.fail(bad_input(field + ": a string was expected, got " + describe(value), field));
        take({.kind = kind, .source = value.get<std::string>(), .field = std::move(field)});
    }
    /// GBNF or Lark's language: rules of the one have ::= behind their names, and clients that send either go by that.
    void grammar(const Json& value, std::string field) {
        const bool gbnf = value.is_string() && value.get_ref<const std::string&>().find("::=") != std::string::npos;
        text(gbnf ? Kind::gbnf : Kind::lark, value, std::move(field));
    }
    void choice(const Json& value, std::string field) {
        TextForm form{.kind = Kind::choice, .field = field};
        const bool is_list = value.is_array() && !value.empty();
        for (size_t i = 0; is_list && i < value.size() && value[i].is_string(); ++i)
            form.choices.push_back(value[i].get<std::string>());
        if (!is_list || form.choices.size() != value.size())
            return reader_.fail(bad_input(field + ": a list of strings was expected, got " + describe(value), field));
        take(std::move(form));
    }
    void json_object(std::string field) { take({.kind = Kind::json_object, .field = std::move(field)}); }

  private:
    FieldReader& reader_;
    TextForm& out_;
};

void read_response_format(FieldReader& reader, FormReader& forms) {
    const Json* value = reader.find("response_format");
    if (value == nullptr || neutral_if_empty(*value)) return;
    const std::string where = reader.at("response_format");
    if (!value->is_object())
        return reader.fail(bad_input(where + ": an object with a type was expected, got " + describe(*value), where));
    FieldReader inner(*value, where);
    const std::string type = inner.string("type");
    if (inner.failed()) return reader.fail(inner.take_error());
    const Json* schema = inner.find("schema");  // llama-server's short form
    if (type == "json_object") {
        if (schema != nullptr) return forms.schema(*schema, where + ".schema");
        return forms.json_object(where);
    }
    if (type == "json_schema") {
        const Json* named = inner.find("json_schema");
        if (named == nullptr && schema != nullptr) return forms.schema(*schema, where + ".schema");
        if (named == nullptr || !named->is_object())
            return reader.fail(
                bad_input(where + ".json_schema: an object with a schema is needed", where + ".json_schema"));
        const auto inside = named->find("schema");
        if (inside == named->end() || inside->is_null())
            return reader.fail(
                bad_input(where + ".json_schema.schema: a schema is needed", where + ".json_schema.schema"));
        return forms.schema(*inside, where + ".json_schema.schema");
    }
    if (type == "text") return;
    reader.fail(unsupported(where + ".type: text, json_object or json_schema was expected, got \"" + type + "\"",
                            where + ".type"));
}

void read_structured_outputs(FieldReader& reader, FormReader& forms) {
    const Json* value = reader.find("structured_outputs");
    if (value == nullptr || neutral_if_empty(*value)) return;
    const std::string where = reader.at("structured_outputs");
    if (!value->is_object())
        return reader.fail(bad_input(where + ": an object was expected, got " + describe(*value), where));
    for (const auto& [key, inner] : value->items()) {
        const std::string field = where + "." + key;
        if (neutral_if_empty(inner)) continue;
        if (key == "json") {
            forms.schema(inner, field);
        } else if (key == "regex") {
            forms.text(Kind::regex, inner, field);
        } else if (key == "choice") {
            forms.choice(inner, field);
        } else if (key == "json_object") {
            forms.json_object(field);
        } else if (key == "grammar") {
            forms.grammar(inner, field);
        } else {
            reader.fail(unsupported(field + " is not supported", field));
        }
    }
}

}  // namespace

void read_text_form(FieldReader& reader, TextForm& out) {
    FormReader forms(reader, out);
    read_response_format(reader, forms);
    const auto asks = [&](std::string_view name) -> const Json* {
        const Json* value = reader.find(name);
        return value == nullptr || neutral_if_empty(*value) ? nullptr : value;
    };
    if (const Json* value = asks("grammar")) {
        const bool lark = value->is_string() && value->get_ref<const std::string&>().starts_with("%llguidance");
        forms.text(lark ? Kind::lark : Kind::gbnf, *value, reader.at("grammar"));
    }
    if (const Json* value = asks("guided_grammar")) forms.grammar(*value, reader.at("guided_grammar"));
    if (const Json* value = asks("regex")) forms.text(Kind::regex, *value, reader.at("regex"));
    if (const Json* value = asks("guided_regex")) forms.text(Kind::regex, *value, reader.at("guided_regex"));
    if (const Json* value = asks("guided_choice")) forms.choice(*value, reader.at("guided_choice"));
    // {} is a schema: any value.
    for (const char* name : {"json_schema", "guided_json"})
        if (const Json* value = reader.find(name); value != nullptr && *value != false && *value != "")
            forms.schema(*value, reader.at(name));
    read_structured_outputs(reader, forms);
}

void read_ollama_format(FieldReader& reader, TextForm& out) {
    const Json* value = reader.find("format");
    if (value == nullptr || neutral_if_empty(*value)) return;
    FormReader forms(reader, out);
    const std::string where = reader.at("format");
    if (*value == "json") return forms.json_object(where);
    if (value->is_object()) return forms.schema(*value, where);
    reader.fail(bad_input(
        where + ": \"json\" or a schema was expected, got " + (value->is_string() ? value->dump() : describe(*value)),
        where));
}

bool may_hold_a_form(std::string_view body) noexcept {
    // The last: letters of a name, spelled as escapes.
    constexpr std::array<std::string_view, 8> kParts = {"schema", "format",  "grammar",     "regex",
                                                        "tool",   "guided_", "structured_", "\\u00"};
    return std::ranges::any_of(kParts, [&](std::string_view part) { return body.find(part) != body.npos; });
}

}  // namespace cadans::serve
