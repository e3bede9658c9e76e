// Asking a running server for a JSON document.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "apps/settings.h"
#include "base/result.h"
#include "client/call.h"

namespace cadans::apps {

/// A request to that path with the key it needs.
client::Request request_to(const ServerAddress& server, std::string path);

/// The JSON document at a path. Errors: those of client::call, and what the server says where its status is not 200.
Result<nlohmann::ordered_json> ask(const ServerAddress& server, const std::string& path);

/// Text as a part of an address: all but letters, digits and -._~ as %XX.
std::string escaped(std::string_view text);

/// Another program than Cadans answers there.
Error strange(const ServerAddress& server);

/// Fields of what a server answered, whoever it is: where there is none of that kind, nothing, `otherwise`, 0 or
/// an empty one.
std::string text_at(const nlohmann::ordered_json& object, const char* key, const char* otherwise = "-");
std::optional<double> maybe_number_at(const nlohmann::ordered_json& object, const char* key);
double number_at(const nlohmann::ordered_json& object, const char* key);
const nlohmann::ordered_json& list_at(const nlohmann::ordered_json& object, const char* key);
const nlohmann::ordered_json& object_at(const nlohmann::ordered_json& object, const char* key);

/// What the server said went wrong.
Error error_of(const client::Reply& reply);

/// "nl" where LC_ALL, LC_MESSAGES or LANG say so; "en" where they name no language that is spoken here.
std::string language_of_the_terminal();

}  // namespace cadans::apps
