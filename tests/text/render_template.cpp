// Renders chat templates for template_differential.py.
//
// usage: render_template < JOBS
// Each line of JOBS is a JSON object: template, messages, tools (may be null), variables, bos_token, eos_token,
// add_generation_prompt, now. Each line written is a JSON object: text, or error (and where); and segments.
#include <iostream>
#include <nlohmann/json.hpp>

#include "text/chat_template.h"

namespace {

using nlohmann::ordered_json;
using namespace cadans;

ordered_json render(const ordered_json& job) {
    const auto parsed = text::ChatTemplate::parse(job.at("template").get<std::string>());
    if (!parsed) return {{"error", parsed.error().message}, {"where", parsed.error().where}};
    text::RenderOptions options;
    options.add_generation_prompt = job.at("add_generation_prompt");
    options.tools = job.at("tools");
    options.variables = job.at("variables");
    options.bos_token = job.at("bos_token");
    options.eos_token = job.at("eos_token");
    options.now_unix_seconds = job.at("now");
    const auto segments = parsed->render(job.at("messages"), options);
    if (!segments) return {{"error", segments.error().message}, {"where", segments.error().where}};
    std::string whole, trusted;
    for (const auto& segment : *segments) {
        whole += segment.text;
        if (segment.trusted) trusted += segment.text;
    }
    return {{"text", whole}, {"trusted", trusted}};
}

}  // namespace

int main() {
    try {
        std::string line;
        while (std::getline(std::cin, line)) {
            std::cout << render(ordered_json::parse(line)).dump(-1, ' ', false, ordered_json::error_handler_t::replace) << "\n";
        }
    } catch (const std::exception& e) {
        std::cerr << e.what() << "\n";
        return 1;
    }
}
