// The fields by which clients ask for an answer of a form, in each dialect's spelling.
#pragma once

#include <string_view>

#include "serve/dialects/field_reader.h"
#include "serve/forms/answer_form.h"

namespace cadans::serve {

/// OpenAI's `response_format`, llama-server's `grammar`, `json_schema` and `regex`, vLLM's `guided_json`,
/// `guided_regex`, `guided_choice` and `structured_outputs`. At most one may ask for something.
void read_text_form(FieldReader& reader, TextForm& out);

/// Ollama's `format`: "json" or a schema.
void read_ollama_format(FieldReader& reader, TextForm& out);

/// Whether a body has one of these fields, or tools, perhaps: looked for without reading it. False where one is only if
/// its name is spelled with escapes.
bool may_hold_a_form(std::string_view body) noexcept;

}  // namespace cadans::serve
