// cadans inspect: what is in a model file, and would it run.

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/commands.h"
#include "apps/engine_room.h"
#include "apps/settings.h"
#include "model/inspect.h"

namespace cadans::apps {

int inspect_command(const InspectSettings& settings) {
    const auto found = find_model_file(settings.path);
    const model::InspectReport report = model::inspect(found ? *found : settings.path);
    const std::string text =
        settings.json ? model::to_json(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                      : model::to_text(report);
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (report.obstacle) std::fprintf(stderr, "%s\n", report.obstacle->message.c_str());
    return report.exit_code();
}

}  // namespace cadans::apps
