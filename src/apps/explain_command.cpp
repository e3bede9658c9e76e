// cadans explain: why an answer took as long as it did, in sentences.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/commands.h"
#include "apps/server_address.h"
#include "apps/stderr_text.h"

namespace cadans::apps {
int explain_command(const ExplainSettings& s) {
    const std::string language = s.language.empty() ? language_of_the_terminal() : s.language;
    const auto reply =
        ask(s.server, fmt::format("/cadans/v1/requests/{}/explanation?language={}", escaped(s.id), language));
    if (!reply) return fail(reply.error());
    if (!reply->is_object() || !reply->contains("sentences")) return fail(strange(s.server));
    if (s.json) {
        std::cout << reply->dump(2) << '\n';
        return 0;
    }
    fmt::print("{}\n", text_at(*reply, "id"));
    for (const auto& sentence : list_at(*reply, "sentences")) fmt::print("{}\n", text_at(sentence, "text", ""));
    return 0;
}

}  // namespace cadans::apps
