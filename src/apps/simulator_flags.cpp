#include "apps/simulator_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "apps/commands.h"
#include "apps/settings.h"

namespace cadans::apps {
namespace {

void add_promise(CLI::App& command, std::string& slo, double& slo_ttft_ms) {
    command.add_option("--slo", slo, "time between tokens: strict (5 x a lone decode step), relaxed (25 x), or ms")
        ->capture_default_str()
        ->type_name("strict|relaxed|MS");
    command
        .add_option("--slo-ttft", slo_ttft_ms, "time to first token in ms; else the same multiple of its own prefill")
        ->check(CLI::Range(1e-3, 1e9))
        ->type_name("MS");
}

/// What the machine that is simulated holds. `room` lives as long as the command.
void add_room(CLI::App& command, sim::Room& room) {
    command.add_option("--context", room.context_tokens, "tokens one request may use")
        ->check(CLI::Range(32, 1 << 24))
        ->capture_default_str();
    command.add_option("--kv-tokens", room.kv_tokens, "tokens all requests may hold together")
        ->check(CLI::Range(32, 1 << 26))
        ->capture_default_str();
    command.add_option("--max-running", room.running, "requests computed side by side")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    command.add_flag_callback(
        "--no-cache", [&room] { room.prefix_cache = false; }, "no prompt is found again");
}

}  // namespace

std::string is_seed(const std::string& text) {
    const bool digits = !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
    return digits ? std::string() : fmt::format("'{}' is no whole number from 0 up", text);
}

void add_simulate(CLI::App& app, int& exit_code) {
    CLI::App* command = app.add_subcommand("simulate", "play a workload on the scheduler without a model");
    auto s = std::make_shared<SimulateSettings>();
    command
        ->add_option(
            "--trace", s->trace,
            "a recorded workload: Azure, Mooncake, ServeGen, lengths; a record of cadans serve --record brings the "
            "machine along")
        ->type_name("FILE");
    command->add_option("--load", s->load, "a made one: poisson, gamma, household, each with :key=value,...")
        ->type_name("SPEC");
    command
        ->add_option("--replay", s->replay, "a record of cadans serve --record: every plan is made again and compared")
        ->type_name("FILE");
    command->add_option("--policy", s->policies, "who runs next; several are compared")
        ->delimiter(',')
        ->type_name("NAME,NAME");
    command
        ->add_option("--fit", s->fit,
                     "the cost table of cadans bench --fit --json; or a record of cadans serve: fitted to its steps")
        ->type_name("FILE");
    command->add_option("--rate", s->rate, "mean requests a second, by scaling time")
        ->check(CLI::Range(1e-9, 1e9))
        ->type_name("R");
    command->add_flag("--capacity", s->capacity, "search the largest rate that keeps the rule");
    command->add_option("--rule", s->rule, "what capacity means")
        ->check(CLI::IsMember({"sarathi", "distserve"}))
        ->capture_default_str();
    add_promise(*command, s->slo, s->slo_ttft_ms);
    command->add_option("--gap-ms", s->gap_ms, "the gap that policies aim at and that counts as a stall; else the SLO")
        ->check(CLI::Range(1e-3, 1e9))
        ->type_name("MS");
    command->add_option("--seed", s->seed, "for everything that is drawn")->check(is_seed)->capture_default_str();
    add_room(*command, s->room);
    command->add_option("--queue", s->room.queue, "requests that may wait; more are refused")
        ->check(CLI::Range(0, 1 << 24))
        ->capture_default_str();
    command->add_option("--plot", s->plot, "a picture of how long people waited, as SVG")->type_name("FILE");
    command->add_flag("--json", s->json, "one record a policy, on stdout");
    command->callback([s, &exit_code] {
        const auto given = !s->trace.empty() + !s->load.empty() + !s->replay.empty();
        if (given != 1) throw CLI::ValidationError("give one of --trace FILE, --load SPEC and --replay FILE");
        exit_code = simulate_command(*s);
    });
}

void add_plan(CLI::App& app, int& exit_code) {
    CLI::App* command = app.add_subcommand(
        "plan",
        "should reading prompts and writing answers live on boxes of their own?\n\n"
        "Plays a load on simulated clusters: all boxes sharing both phases, and every division into some that read\n"
        "(prefill) and some that write (decode), with pages that cross a link in between. For each: goodput, the most\n"
        "requests a second of which 90 % keep the promise (--slo, --slo-ttft); the same a box; the tightest promise\n"
        "that is still kept at one rate; how busy each part and the link are; and what a prompt's transfer holds an\n"
        "answer up. Below it a sentence says which to choose and why, also when that is not to split.\n\n"
        "  cadans plan --load poisson:prompt=1000,output=200 --boxes 2,4\n"
        "  cadans bench --model FILE --fit --json > here.json      on each kind of box that there is\n"
        "  cadans plan --trace FILE --fit here.json --link 2.5G\n"
        "  cadans plan --trace FILE --fit here.json --box here.json \\\n"
        "      --box '{\"name\": \"big\", \"compute\": 8, \"memory_speed\": 4, \"memory\": \"16G\", \"price\": "
        "1500}'\n\n"
        "A worker card (--box) is a cost table that was measured on that box, or for one that might be bought a JSON\n"
        "object: name; compute and memory_speed as multiples of the --fit table's machine; memory for keys and "
        "values;\n"
        "running, requests side by side; price. Each may be left out.");
    auto s = std::make_shared<PlanSettings>();
    command->add_option("--trace", s->trace, "a recorded workload, as of simulate; only lengths and spacing count")
        ->type_name("FILE");
    command->add_option("--load", s->load, "a made one: poisson, gamma, household, each with :key=value,...")
        ->type_name("SPEC");
    command->add_option("--requests", s->requests, "play the first so many")
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
    command
        ->add_option("--fit", s->fit,
                     "the cost table of cadans bench --fit --json, or a record of cadans serve; else a built-in one")
        ->type_name("FILE");
    command->add_option("--box", s->boxes, "a worker card, one for each kind of box; else the table's machine")
        ->type_name("FILE|JSON")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command->add_option("--boxes", s->counts, "how many boxes; several numbers are looked at one by one")
        ->delimiter(',')
        ->type_name("N,N")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    command->add_option("--link", s->link, "speed into each box that writes, in bits a second: 100M, 1G, 2.5G")
        ->capture_default_str()
        ->type_name("SPEED");
    command->add_option("--link-latency-ms", s->link_latency_ms, "on its way")
        ->check(CLI::Range(0.0, 1e6))
        ->capture_default_str();
    command->add_option("--kv-bytes", s->kv_bytes, "keys and values of one token; else as the table says, or 32768")
        ->check(CLI::Range(uint64_t{1}, sim::KvShape::kMostTokenBytes));
    command->add_option("--layers", s->layers, "of the model; else as the table says, or 16")
        ->check(CLI::Range(1U, sim::KvShape::kMostLayers));
    command->add_option("--policy", s->policy, "who runs next, on every box")->capture_default_str()->type_name("NAME");
    add_promise(*command, s->slo, s->slo_ttft_ms);
    command
        ->add_option("--rate", s->rate,
                     "requests a second at which the tightest promise is sought; else half of what sharing serves")
        ->check(CLI::Range(1e-9, 1e6))
        ->type_name("R");
    command->add_option("--seed", s->seed, "for everything that is drawn")->check(is_seed)->capture_default_str();
    add_room(*command, s->room);
    command->add_flag("--json", s->json, "one JSON document on stdout");
    command->callback([s, &exit_code] {
        if (s->trace.empty() == s->load.empty()) throw CLI::ValidationError("give one of --trace FILE and --load SPEC");
        exit_code = plan_command(*s);
    });
}

}  // namespace cadans::apps
