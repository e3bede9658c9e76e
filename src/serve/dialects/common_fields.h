// Fields that several dialects spell alike.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "serve/dialects/field_reader.h"
#include "serve/dialects/generation_request.h"

namespace cadans::serve {

/// A value of another type than it should have: what was expected, what came, and where.
Error wrong(const std::string& where, std::string_view expected, const Json& got);

/// How a field that this server does not do is told from one that asks for nothing.
struct RefusedField {
    std::string_view name;
    /// True when this value changes nothing: null, false, an empty string or list, the neutral number.
    bool (*is_neutral)(const Json& value);
};

bool neutral_if_empty(const Json& value);  ///< null, false, "", [], {}
bool neutral_if_zero(const Json& value);   ///< that, or 0
bool neutral_if_one(const Json& value);    ///< that, or 1
bool neutral_if_true(const Json& value);   ///< null or true

/// Records `unsupported` for the first of `fields` that asks for something.
void refuse(FieldReader& reader, std::span<const RefusedField> fields);

/// The model asked for; the first one when absent, null or empty.
const ServedModel* read_model(FieldReader& reader, const Catalog& catalog, bool ollama_names);

/// One token id of this vocabulary, padding rows refused.
Result<TokenId> read_token_id(const Json& value, const text::Vocabulary& vocabulary, const std::string& where);

/// A list of them.
Result<std::vector<TokenId>> read_token_ids(const Json& list, const text::Vocabulary& vocabulary,
                                            const std::string& where);

/// Messages of the form that read_messages() takes, made of another.
struct Turns {
    Json messages = Json::array();
    std::vector<std::string> places = {};  ///< where what each was made of stands in the body

    void add(Json message, std::string place) {
        messages.push_back(std::move(message));
        places.push_back(std::move(place));
    }
};

/// Checks messages and brings them into the form that the model's template reads: roles known, `developer` as `system`,
/// contents as one string (or as text parts, where the template wants those), calls of tools and their results as it
/// knows them. The model has a template. Errors name messages[i].
Result<Conversation> read_messages(const Json& messages, const ServedModel& model, const ToolUse& tools = {});

/// Fails where the model has no template. `place`: the field that needs it; `instead`: what does without, with the
/// words that lead on to starting the server with one.
void need_template(FieldReader& reader, const ModelCard& model, const char* place, const char* instead = "");

/// The prompt from the turns of a dialect that has its own; errors name their places. `variables` are the template's.
Status take_turns(Result<Turns> turns, Json variables, GenerationRequest& request);

/// Who asks is kept with each record and told to each who watches: a name, and no document.
inline constexpr size_t kMostUserBytes = 512;
std::string read_user(FieldReader& reader, const char* key, const std::string& fallback);

/// `priority`, `user`, `cache_prompt`, `speculate`, `keep_alive`.
void read_asker(FieldReader& reader, GenerationRequest& request);

/// top_k and repeat_last_n as people write them: 0 and -1 mean all.
uint32_t count_or_all(double number) noexcept;

}  // namespace cadans::serve
