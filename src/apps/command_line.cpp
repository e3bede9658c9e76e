// The command line: every flag of every command; those of the commands that simulate stand in simulator_flags.
#include "apps/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>

#include "apps/commands.h"
#include "apps/config_file.h"
#include "apps/settings.h"
#include "apps/simulator_flags.h"
#include "apps/stderr_text.h"
#include "sched/policies.h"
#include "serve/dialects/keep_alive.h"

namespace cadans::apps {
namespace {

constexpr const char* kConfigFlag = "--config";
constexpr uint32_t kMostTokens = 1 << 24;  ///< of one request, and of one row of a benchmark

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

/// Empty, or why it is none.
std::string is_size(const std::string& text) {
    const Result<uint64_t> size = parse_size(text);
    return size ? std::string() : size.error().message;
}

std::string is_size_or_nothing(const std::string& text) { return text.empty() ? std::string() : is_size(text); }

std::string is_keep_alive_or_nothing(const std::string& text) {
    if (text.empty()) return {};
    const Result<Nanos> read = serve::parse_keep_alive(text);
    return read ? std::string() : read.error().message;
}

void add_settings(CLI::App& command, ComputeSettings& s) {
    setting(
        command, "model", s.models,
        "a GGUF file, a name in the model folder, NAME=FILE, or a folder as --models-dir; may be given again. Files "
        "are loaded at the start as far as they fit, the first is the default")
        ->type_name("FILE_OR_NAME");
    setting(command, "models-dir", s.models_dir,
            "a folder whose GGUF files are served by name, each loaded when somebody asks for it")
        ->type_name("DIR");
    setting(command, "model-memory", s.model_memory,
            "memory for the weights of all models that are loaded; idle ones make room; default: what is free")
        ->type_name("SIZE")
        ->check(is_size_or_nothing);
    setting(command, "chat-template", s.chat_templates,
            "a Jinja chat template instead of what the models' files have, or with NAME=FILE instead of that of one "
            "model; may be given again")
        ->type_name("FILE");
    setting(command, "threads", s.threads, "threads that compute; 0: all usable physical cores")
        ->check(CLI::Range(0, 256));
    setting(command, "context", s.context, "tokens one request may use, prompt and answer; 0: as trained, if that fits")
        ->check(CLI::Range(uint32_t{0}, kMostTokens));
    setting(command, "kv-memory", s.kv_memory,
            "memory for the keys and values of all requests together; default: a quarter of what is free")
        ->type_name("SIZE")
        ->check(is_size_or_nothing);
    setting(command, "kv-type", s.kv_type,
            "what keys and values are kept as: f16, or q8, which takes little over half the memory and costs a little "
            "accuracy")
        ->check(CLI::IsMember({"f16", "q8"}));
    setting(command, "max-running", s.max_running, "requests computed side by side")->check(CLI::Range(1, 1024));
    setting(command, "prefill-chunk", s.prefill_chunk,
            "prompt tokens computed in one step, under a policy of fixed chunks; cadence cuts by --gap-ms")
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
    setting(command, "port", s.port, "port to listen on; 0: one that is free; 11434 is Ollama's")
        ->check(CLI::Range(0, 65535));
    setting(command, "host-name", s.host_names,
            "a further name that clients may use for this machine; may be given again");
    setting(command, "allow-origin", s.allowed_origins,
            "a web page's origin that may call this server; may be given again");
    setting(command, "api-key", s.api_key, "the key that every request must carry");
    setting(command, "keep-alive", s.keep_alive,
            "how long an idle model stays in memory where a request does not say: 5m, 1h30m, seconds, 0, or -1 for "
            "ever; default: 5m, and for ever those loaded at the start")
        ->type_name("TIME")
        ->check(is_keep_alive_or_nothing);
    setting(command, "queue", s.queue, "requests that may wait; more are told to come back (429)")
        ->check(CLI::Range(0, 100000));
    setting(command, "gap-ms", s.gap_ms,
            "the longest gap between two words that anyone should feel; longer ones count as stalls; 0: 200, or what "
            "this machine needs to read prompts well")
        ->check(CLI::Range(0, 60000));
    std::vector<std::string> policies;
    for (const std::string_view name : sched::policy_names()) policies.emplace_back(name);
    setting(command, "policy", s.policy, "who runs next")->check(CLI::IsMember(policies));
    setting(command, "speculate", s.speculate,
            "guess what an answer goes on with and check several tokens in one step, as far as that pays; no answer "
            "changes by it: auto, off, lookup or suffix, where a request does not say")
        ->check(CLI::IsMember({"auto", "off", "lookup", "suffix"}));
    setting(command, "record", s.record,
            "a file for what the scheduler is given and decides, without text; cadans simulate --replay reads it");
    setting(command, "history", s.history,
            "keep the times and counts of finished requests on disk, without a word of them: on or off")
        ->check(CLI::IsMember({"on", "off"}));
    setting(command, "history-size", s.history_size, "room for that; the oldest records go first")
        ->type_name("SIZE")
        ->check(is_size);
    setting(command, "history-days", s.history_days, "days after which a record goes")->check(CLI::Range(1, 36500));
    setting(command, "history-prompts", s.history_prompts, "keep the text of prompts beside their records: on or off")
        ->check(CLI::IsMember({"on", "off"}));
    setting(command, "otlp-endpoint", s.otlp_endpoint,
            "an OpenTelemetry collector for spans (OTLP over HTTP), such as http://127.0.0.1:4318; no word of a prompt "
            "is in them")
        ->type_name("URL");
    setting(command, "insecure-no-key", s.insecure_bind, "listen beyond this machine without an API key");
}

/// Fills what neither flag nor environment gave from the file named by --config, or ./cadans.toml where there is one.
/// Errors: bad_input, with file, key and what was expected.
Status apply_config_file(CLI::App& command) {
    const CLI::Option* config = command.get_option(kConfigFlag);
    const bool named = config->count() > 0;
    const std::string path = named ? config->as<std::string>() : "cadans.toml";
    if (!named && !std::filesystem::exists(path)) return Ok{};
    const auto entries = read_config(path);
    if (!entries) return entries.error();
    for (const ConfigEntry& entry : *entries) {
        CLI::Option* option = command.get_option_no_throw("--" + entry.name);
        if (option == nullptr || entry.name == "config" || entry.name == "help")
            return bad_input(
                fmt::format("{}: '{}' is no setting; cadans serve --help lists them", entry.where, entry.name), path);
        if (option->count() > 0) continue;  // a flag or the environment comes first
        for (const std::string& value : entry.values) option->add_result(value);
        try {
            option->run_callback();
        } catch (const CLI::Error& e) {
            return bad_input(fmt::format("{}: {}", entry.where, e.what()), path);
        }
    }
    return Ok{};
}

// Each adds its subcommand; running it sets the process's exit code.

void add_serve(CLI::App& app, int& exit_code) {
    CLI::App* command = app.add_subcommand("serve", "serve models over HTTP to OpenAI and Ollama clients");
    auto settings = std::make_shared<ServeSettings>();
    add_settings(*command, *settings);
    command->callback([command, settings, &exit_code] {
        if (Status applied = apply_config_file(*command); !applied) {
            exit_code = fail(applied.error());
            return;
        }
        exit_code = serve_command(*settings);
    });
}

void add_run(CLI::App& app, int& exit_code) {
    CLI::App* command = app.add_subcommand("run", "chat with a model in the terminal, or ask it one thing");
    auto settings = std::make_shared<RunSettings>();
    command->add_option("MODEL", settings->model, "a GGUF file or a name in the model folder")->required();
    command->add_option("PROMPT", settings->prompt, "what to ask; without it, a conversation begins");
    command->add_option("--system", settings->system, "the system message");
    command->add_option("--temperature", settings->temperature, "0: always the likeliest word")
        ->check(CLI::Range(0.0, 100.0))
        ->capture_default_str();
    command->add_option("--max-tokens", settings->max_tokens, "longest answer; 0: until the context is full")
        ->capture_default_str();
    command->add_flag("--json", settings->json, "print one JSON document instead of text (with PROMPT)");
    command
        ->add_option_function<std::string>(
            "--chat-template", [settings](const std::string& file) { settings->compute.chat_templates = {file}; },
            "a Jinja chat template instead of what the file has")
        ->type_name("FILE");
    command->add_option("--threads", settings->compute.threads, "threads that compute; 0: all usable physical cores")
        ->check(CLI::Range(0, 256))
        ->envname("CADANS_THREADS");
    command
        ->add_option("--context", settings->compute.context,
                     "tokens of the whole conversation; 0: as trained, if that fits")
        ->check(CLI::Range(uint32_t{0}, kMostTokens))
        ->envname("CADANS_CONTEXT");
    command
        ->add_option("--kv-memory", settings->compute.kv_memory,
                     "memory for keys and values; default: a quarter of what is free")
        ->type_name("SIZE")
        ->check(is_size_or_nothing)
        ->envname("CADANS_KV_MEMORY");
    command->add_option("--kv-type", settings->compute.kv_type, "what keys and values are kept as: f16 or q8")
        ->check(CLI::IsMember({"f16", "q8"}))
        ->capture_default_str()
        ->envname("CADANS_KV_TYPE");
    command->add_option("--isa", settings->compute.isa, "forces an instruction set")->envname("CADANS_ISA");
    command->callback([settings, &exit_code] {
        if (settings->json && settings->prompt.empty()) {
            to_stderr("cadans: --json needs a PROMPT\n");
            exit_code = 2;
            return;
        }
        exit_code = run_command(*settings);
    });
}

void add_bench_serve(CLI::App& bench, int& exit_code) {
    CLI::App* command = bench.add_subcommand(
        "serve",
        "play a workload on a running server, ours or a peer's, and tell what its clients felt; two are compared");
    auto s = std::make_shared<BenchServeSettings>();
    command->add_option("URL", s->urls, "addresses of one or two servers that speak OpenAI's or Ollama's dialect")
        ->required()
        ->expected(1, 2);
    command->add_option("--load", s->load, "poisson, gamma, household, each with :key=value,... as of simulate")
        ->capture_default_str()
        ->type_name("SPEC");
    command->add_option("--trace", s->trace, "a recorded workload instead: Azure, Mooncake, ServeGen, lengths, our own")
        ->type_name("FILE");
    command->add_option("--rate", s->rate, "mean requests a second, by scaling time")
        ->check(CLI::Range(1e-9, 1e9))
        ->type_name("R");
    command->add_option("--duration", s->duration, "seconds in which requests begin; else all of the workload")
        ->check(CLI::Range(1e-3, 1e9))
        ->type_name("S");
    command->add_option("--dialect", s->dialect, "openai or ollama; else whichever the server speaks")
        ->check(CLI::IsMember({"openai", "ollama"}));
    command->add_option("--model", s->model, "the model to ask; else the first that the server names");
    command->add_option("--api-key", s->api_key, "a key, where one is asked for [CADANS_API_KEY]")
        ->envname("CADANS_API_KEY");
    command->add_option("--most-prompt", s->most_prompt, "cut longer prompts to so many tokens");
    command->add_option("--most-output", s->most_output, "cut longer answers to so many tokens");
    command->add_option("--gap-ms", s->gap_ms, "a longer gap between words is a stall")
        ->check(CLI::Range(1e-3, 1e9))
        ->capture_default_str();
    command->add_option("--seed", s->seed, "for everything that is drawn")->check(is_seed)->capture_default_str();
    command->add_option("--plot", s->plot, "a picture of how long people waited, as SVG")->type_name("FILE");
    command->add_flag("--realtime", s->realtime, "stop-watches go before other work of this machine (root)");
    command->add_flag("--json", s->json, "one record a server, on stdout");
    command->callback([s, &exit_code] { exit_code = bench_serve_command(*s); });
}

void add_bench(CLI::App& app, int& exit_code) {
    CLI::App* command =
        app.add_subcommand("bench", "measure prompt reading (prefill) and writing (decode), each by itself");
    auto s = std::make_shared<BenchSettings>();
    command->add_option("--model", s->compute.models, "a GGUF file or a name in the model folder")->expected(1);
    command->add_option("--prompt", s->prompt, "prompt sizes in tokens; 0 leaves prefill out")
        ->delimiter(',')
        ->check(CLI::Range(uint32_t{0}, kMostTokens))
        ->capture_default_str();
    command->add_option("--generate", s->generate, "answer sizes in tokens; 0 leaves decode out")
        ->delimiter(',')
        ->check(CLI::Range(uint32_t{0}, kMostTokens))
        ->capture_default_str();
    command->add_option("--depth", s->depth, "tokens that stand before, already computed")
        ->delimiter(',')
        ->check(CLI::Range(uint32_t{0}, kMostTokens))
        ->capture_default_str();
    command->add_option("--batch", s->batch, "sequences that write side by side")
        ->delimiter(',')
        ->check(CLI::Range(1, 256))
        ->capture_default_str();
    command->add_option("--beside", s->beside, "sequences that write a token in each step that reads a prompt")
        ->delimiter(',')
        ->check(CLI::Range(0, 255))
        ->capture_default_str();
    command->add_option("--threads", s->threads, "thread counts to compare; default: all usable physical cores")
        ->delimiter(',')
        ->check(CLI::Range(0, 256));
    command->add_option("--repeat", s->repeat, "runs of each row after a warm-up; the median is shown")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command->add_option("--prefill-chunk", s->compute.prefill_chunk, "prompt tokens of one step")
        ->check(CLI::Range(1, 8192))
        ->capture_default_str();
    command
        ->add_option("--kv-memory", s->compute.kv_memory,
                     "memory for keys and values; default: a quarter of what is free")
        ->type_name("SIZE")
        ->check(is_size_or_nothing);
    command->add_option("--kv-type", s->compute.kv_type, "what keys and values are kept as: f16 or q8")
        ->check(CLI::IsMember({"f16", "q8"}))
        ->capture_default_str();
    command->add_option("--isa", s->compute.isa, "forces an instruction set")->envname("CADANS_ISA");
    command->add_flag("--fit", s->fit,
                      "measure what steps cost, for the server and 'cadans simulate --fit', and print that");
    command->add_flag("--json", s->json, "print JSON instead of a table");
    add_bench_serve(*command, exit_code);
    command->callback([command, s, &exit_code] {
        if (command->get_subcommands().empty()) exit_code = bench_command(*s);
    });
}

void add_inspect(CLI::App& app, int& exit_code) {
    auto options = std::make_shared<InspectSettings>();
    CLI::App* const command = app.add_subcommand("inspect", "what a model file holds, and whether it would run");
    command->add_option("FILE", options->path, "a GGUF file or a name in the model folder")->required();
    command->add_flag("--json", options->json, "one JSON document on stdout");
    command->callback([options, &exit_code] { exit_code = inspect_command(*options); });
}

void add_server_address(CLI::App& command, ServerAddress& server) {
    command.add_option("--url", server.url, "the server's address")->capture_default_str()->type_name("URL");
    command.add_option("--api-key", server.api_key, "its key, where it asks for one [CADANS_API_KEY]")
        ->envname("CADANS_API_KEY");
}

void add_explain(CLI::App& app, int& exit_code) {
    CLI::App* command = app.add_subcommand("explain", "why an answer took as long as it did, in sentences");
    auto s = std::make_shared<ExplainSettings>();
    command->add_option("ID", s->id, "the answer's id; without one, the last that finished");
    add_server_address(*command, s->server);
    command->add_option("--language", s->language, "en, nl or de; else the terminal's")
        ->check(CLI::IsMember({"en", "nl", "de"}));
    command->add_flag("--json", s->json, "one JSON document on stdout");
    command->callback([s, &exit_code] { exit_code = explain_command(*s); });
}

void add_top(CLI::App& app, int& exit_code) {
    CLI::App* command = app.add_subcommand(
        "top", "who is being served now, and what holds them up; one plain picture where stdout is no terminal");
    auto s = std::make_shared<TopSettings>();
    add_server_address(*command, s->server);
    command->add_flag("--json", s->json, "one snapshot as JSON on stdout");
    command->callback([s, &exit_code] { exit_code = top_command(*s); });
}

}  // namespace

int run_command_line(int argc, char** argv) {
    CLI::App app{
        "Cadans: a local LLM server that shows where the time goes.\n\n"
        "  cadans serve --model FILE      serve a model to OpenAI and Ollama clients\n"
        "  cadans run FILE \"question\"     ask in the terminal\n"
        "  cadans bench --model FILE      measure prompt reading and writing apart\n"
        "  cadans simulate --trace FILE   play a workload on the scheduler, without a model\n"
        "  cadans plan --trace FILE       should reading and writing live on boxes of their own\n"
        "  cadans inspect FILE            what is in a model file, and would it run\n"
        "  cadans explain [ID]            why an answer took as long as it did\n"
        "  cadans top                     who is being served now\n"};
    app.name("cadans");
    app.set_version_flag("--version", "cadans " CADANS_VERSION);
    app.require_subcommand(1);
    app.get_formatter()->column_width(40);
    int exit_code = 0;
    add_serve(app, exit_code);
    add_run(app, exit_code);
    add_bench(app, exit_code);
    add_simulate(app, exit_code);
    add_plan(app, exit_code);
    add_inspect(app, exit_code);
    add_explain(app, exit_code);
    add_top(app, exit_code);
    const auto is_meant = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(is_meant).empty()) {
        to_stderr("cadans: there is no command '{}'; cadans --help lists them\n", argv[1]);
        return 2;
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        const bool asked = e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);  // --help, --version
        app.exit(e);
        return asked ? 0 : 2;
    } catch (const std::exception& e) {
        to_stderr("cadans: {}\n", e.what());
        return 70;
    }
    return exit_code;
}

}  // namespace cadans::apps
