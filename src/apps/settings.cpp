#include "apps/settings.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>

#include "base/units.h"
#include "sched/policies.h"

namespace cadans::apps {
namespace {

constexpr const char* kConfigFlag = "--config";

/// One setting under its three names.
template <class T>
CLI::Option* setting(CLI::App& command, const std::string& name, T& value, const std::string& help) {
    std::string variable = "CADANS_" + name;
    std::ranges::transform(variable, variable.begin(),
                           [](unsigned char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
    CLI::Option* option = nullptr;
    const std::string text = fmt::format("{} [{}; {} in cadans.toml]", help, variable, name);
    if constexpr (std::is_same_v<T, bool>)
        option = command.add_flag("--" + name, value, text);
    else
        option = command.add_option("--" + name, value, text)->capture_default_str();
    return option->envname(variable);
}

std::string as_text(const toml::node& node) {
    if (const auto text = node.value<std::string>()) return *text;
    std::ostringstream out;
    out << toml::node_view<const toml::node>(node);
    return out.str();
}

}  // namespace

void add_settings(CLI::App& command, ComputeSettings& s) {
    setting(command, "model", s.models, "a GGUF file, a name in the model folder, or NAME=FILE; may be given again")
        ->type_name("FILE_OR_NAME");
    setting(command, "chat-template", s.chat_template_file, "a Jinja chat template for models whose file has none")
        ->type_name("FILE");
    setting(command, "threads", s.threads, "threads that compute; 0: all usable physical cores")
        ->check(CLI::Range(0, 256));
    setting(command, "context", s.context, "tokens one request may use, prompt and answer; 0: as trained, if that fits")
        ->check(CLI::Range(0, 1 << 24));
    setting(command, "kv-memory", s.kv_memory,
            "memory for the keys and values of all requests together; default: a quarter of what is free")
        ->type_name("SIZE")
        ->check([](const std::string& text) {
            const Result<uint64_t> size = parse_size(text);
            return size || text.empty() ? std::string() : size.error().message;
        });
    setting(command, "max-running", s.max_running, "requests computed side by side")->check(CLI::Range(1, 1024));
    setting(command, "prefill-chunk", s.prefill_chunk, "prompt tokens computed in one step")
        ->check(CLI::Range(1, 8192));
    setting(
        command, "prefix-cache", s.prefix_cache,
        "keep computed prompts and answers in free key and value memory for the next prompt that begins alike: on or "
        "off")
        ->check(CLI::IsMember({"on", "off"}));
    setting(command, "isa", s.isa, "forces an instruction set: scalar, avx2 or avx512");
    command.add_option(kConfigFlag, "a configuration file; default: ./cadans.toml where there is one")
        ->type_name("FILE")
        ->envname("CADANS_CONFIG");
}

void add_settings(CLI::App& command, ServeSettings& s) {
    add_settings(command, s.compute);
    setting(command, "host", s.host, "address to listen on");
    setting(command, "port", s.port, "port to listen on; 0: one that is free; 11434 is Ollama's");
    setting(command, "host-name", s.host_names,
            "a further name that clients may use for this machine; may be given again");
    setting(command, "allow-origin", s.allowed_origins,
            "a web page's origin that may call this server; may be given again");
    setting(command, "api-key", s.api_key, "the key that every request must carry");
    setting(command, "queue", s.queue, "requests that may wait; more are told to come back (429)")
        ->check(CLI::Range(0, 100000));
    setting(command, "gap-ms", s.gap_ms,
            "the longest gap between two words that anyone should feel; longer ones count as stalls; 0: 200, or what "
            "this machine needs to read prompts well")
        ->check(CLI::Range(0, 60000));
    std::vector<std::string> policies;
    for (const std::string_view name : sched::policy_names()) policies.emplace_back(name);
    setting(command, "policy", s.policy, "who runs next")->check(CLI::IsMember(policies));
    setting(command, "record", s.record,
            "a file for what the scheduler is given and decides, without text; cadans simulate --replay reads it");
    setting(command, "insecure-no-key", s.insecure_bind, "listen beyond this machine without an API key");
}

Status apply_config_file(CLI::App& command) {
    const CLI::Option* config = command.get_option(kConfigFlag);
    const bool named = config->count() > 0;
    const std::string path = named ? config->as<std::string>() : "cadans.toml";
    if (!named && !std::filesystem::exists(path)) return Ok{};
    toml::table table;
    try {
        table = toml::parse_file(path);
    } catch (const toml::parse_error& e) {
        return bad_input(fmt::format("{}:{}: {}", path, e.source().begin.line, e.description()), path);
    }
    for (const auto& [key, node] : table) {
        const std::string name(key.str());
        CLI::Option* option = command.get_option_no_throw("--" + name);
        if (option == nullptr || name == "config" || name == "help")
            return bad_input(fmt::format("{}:{}: '{}' is no setting; cadans serve --help lists them", path,
                                         node.source().begin.line, name),
                             path);
        if (option->count() > 0) continue;  // a flag or the environment comes first
        if (const toml::array* list = node.as_array()) {
            for (const toml::node& item : *list) option->add_result(as_text(item));
        } else {
            option->add_result(as_text(node));
        }
        try {
            option->run_callback();
        } catch (const CLI::Error& e) {
            return bad_input(fmt::format("{}:{}: {}", path, node.source().begin.line, e.what()), path);
        }
    }
    return Ok{};
}

}  // namespace cadans::apps
