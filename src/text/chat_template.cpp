#include "text/chat_template.h"

#include <fmt/format.h>

#include "text/jinja/functions.h"
#include "text/jinja/json_text.h"
#include "text/jinja/machine.h"
#include "text/jinja/parser.h"

namespace cadans::text {
namespace {

using nlohmann::ordered_json;

/// Gives the machine all names that a template may use.
void define_names(jinja::Machine& machine, const ordered_json& messages, const RenderOptions& options) {
    for (const std::string_view name : jinja::function_names()) {
        machine.define(name, std::make_shared<const jinja::Callable>(jinja::Callable{
                                 jinja::Callable::Kind::function, std::string(name), {}, nullptr, nullptr}));
    }
    // A client's variables come first, so that they cannot stand in for what follows.
    if (options.variables.is_object()) {
        for (const auto& [name, value] : options.variables.items())
            machine.define(name, jinja::from_json(machine, value));
    }
    machine.define("add_generation_prompt", options.add_generation_prompt);
    machine.define("bos_token", jinja::make_text(options.bos_token, true));
    machine.define("eos_token", jinja::make_text(options.eos_token, true));
    if (!options.tools.is_null()) machine.define("tools", jinja::from_json(machine, options.tools));
    machine.define("messages", jinja::messages_from_json(machine, messages));
}

std::vector<Segment> segments_of(const jinja::MarkedText& text) {
    std::vector<Segment> segments;
    size_t begin = 0;
    for (const auto& run : text.runs()) {
        segments.push_back({text.bytes().substr(begin, run.end - begin), run.trusted});
        begin = run.end;
    }
    return segments;
}

}  // namespace

struct ChatTemplate::Program {
    jinja::Body body;

    Result<jinja::MarkedText> run(const ordered_json& messages, const RenderOptions& options) const {
        jinja::Machine machine(options.limits, options.now_unix_seconds);
        define_names(machine, messages, options);
        return machine.run(body);
    }

    /// Whether a message with this content shows `needle` and nothing of the content's own form.
    bool shows(const ordered_json& content, std::string_view needle) const {
        ordered_json message;
        message["role"] = "user";
        message["content"] = content;
        const auto text = run(ordered_json::array({message}), RenderOptions{});
        return text && text->bytes().find(needle) != std::string::npos &&
               text->bytes().find("'type'") == std::string::npos && text->bytes().find("\"type\"") == std::string::npos;
    }
};

ChatTemplate::ChatTemplate(std::string source, std::unique_ptr<Program> program)
    : source_(std::move(source)), program_(std::move(program)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, const TemplateLimits& limits) {
    if (source.size() > limits.source_bytes)
        return Error{ErrorCode::too_large, fmt::format("a chat template of {} bytes; at most {} are accepted",
                                                       source.size(), limits.source_bytes)};
    auto body = jinja::parse(source, limits.depth);
    if (!body) return std::move(body).error();
    ChatTemplate made(std::string(source), std::make_unique<Program>(Program{*std::move(body)}));
    constexpr std::string_view kNeedle = "needle-7f3a";
    const ordered_json parts = ordered_json::parse(R"([{"type": "text", "text": "needle-7f3a"}])");
    made.wants_content_parts_ = !made.program_->shows(kNeedle, kNeedle) && made.program_->shows(parts, kNeedle);
    return made;
}

Result<std::vector<Segment>> ChatTemplate::render(const ordered_json& messages, const RenderOptions& options) const {
    auto text = program_->run(messages, options);
    if (!text) return std::move(text).error();
    return segments_of(*text);
}

Result<std::string> ChatTemplate::render_text(const ordered_json& messages, const RenderOptions& options) const {
    auto text = program_->run(messages, options);
    if (!text) return std::move(text).error();
    return text->bytes();
}

}  // namespace cadans::text
