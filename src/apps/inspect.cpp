#include "apps/commands.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "model/inspect.h"

namespace cadans::apps {
namespace {

struct Options {
    std::string path;
    bool json = false;
};

int run(const Options& options) {
    const model::InspectReport report = model::inspect(options.path);
    const std::string text =
        options.json ? model::to_json(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                     : model::to_text(report);
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (report.obstacle) std::fprintf(stderr, "%s\n", report.obstacle->message.c_str());
    return report.exit_code();
}

}  // namespace

void add_inspect(CLI::App& app, int& exit_code) {
    auto options = std::make_shared<Options>();
    CLI::App* const command = app.add_subcommand("inspect", "Show what a model file holds and whether it would run");
    command->add_option("FILE", options->path, "A GGUF file")->required();
    command->add_flag("--json", options->json, "One JSON document on stdout");
    command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace cadans::apps
