// cadans serve: the house with its doors open.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "apps/calibration.h"
#include "apps/commands.h"
#include "apps/engine_room.h"
#include "apps/progress.h"
#include "apps/room_loader.h"
#include "apps/settings.h"
#include "apps/stderr_text.h"
#include "apps/supervisor.h"
#include "base/clock.h"
#include "base/random.h"
#include "draft/drafters.h"
#include "metrics/metrics.h"
#include "runtime/engine_thread.h"
#include "runtime/fanout.h"
#include "runtime/inbox.h"
#include "runtime/loop.h"
#include "runtime/tape.h"
#include "sched/chunk.h"
#include "sched/policies.h"
#include "sched/scheduler.h"
#include "serve/http/server.h"

namespace cadans::apps {
namespace {

constexpr Micros kMicrosPerMilli = 1'000;
constexpr Nanos kUsualKeepAlive = 5 * 60 * kNanosPerSecond;  // Ollama's
constexpr Micros kUsualGap = 200 * kMicrosPerMilli;

/// A name that begins like a loopback address may stand for any machine, so addresses are parsed.
bool is_loopback(const std::string& host) {
    in_addr address{};
    const bool is_address = ::inet_pton(AF_INET, host.c_str(), &address) == 1;
    return host == "localhost" || host == "::1" || host == "[::1]" ||
           (is_address && ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET);
}

serve::ServerOptions options_of(const ServeSettings& s, const Life& life) {
    serve::ServerOptions options;
    options.host = s.host;
    options.port = life.port != 0 ? life.port : s.port;
    options.host_names = s.host_names;
    options.allowed_origins = s.allowed_origins;
    options.api_key = s.api_key;
    options.queue_places = s.queue;
    options.version = CADANS_VERSION;
    options.otlp_endpoint = s.otlp_endpoint;
    if (s.history == "on") options.history.path = state_folder() + "/history.db";
    options.history.most_bytes = *parse_size(s.history_size);
    options.history.most_days = s.history_days;
    options.history.prompts = s.history_prompts == "on";
    return options;
}

/// The parts that answer, in the order in which they lean on each other.
struct Works {
    Works(EngineRoom& room, const ServeSettings& s, serve::Server& server, std::unique_ptr<runtime::Tape> recorder)
        : tape(std::move(recorder)),
          inbox(room.house, room.house.limits.max_running + s.queue),
          fanout(server.notifier()),
          drafters(*draft::speculation_named(s.speculate)),
          scheduler(room.house, *sched::policy_by_name(s.policy), &drafters),
          loop(inbox, scheduler, *room.executor, fanout, tape.get()),
          engine(loop, inbox) {}

    std::unique_ptr<runtime::Tape> tape;  ///< null: nothing is recorded
    runtime::Inbox inbox;
    runtime::Fanout fanout;
    draft::Drafters drafters;
    sched::Scheduler scheduler;
    runtime::Loop loop;
    runtime::EngineThread engine;
};

/// What the doors show of the machine and of the settings.
serve::MachineCard machine_of(EngineRoom& room, const ServeSettings& s) {
    serve::MachineCard card{.version = CADANS_VERSION,
                            .cpu = engine::cpu_name(),
                            .isa = room.table->name,
                            .policy = s.policy,
                            .threads = room.pool->threads(),
                            .limits = machine_limits(room)};
    if (s.policy == "cadence") card.gap = room.house.limits.gap * kNanosPerMicro;
    card.page_bytes = room.house.page_bytes;
    card.max_running = room.house.limits.max_running;
    card.prefix_cache = room.house.prefix_cache;
    return card;
}

std::vector<serve::ModelCard> cards_of(const EngineRoom& room, const ServeSettings& s) {
    std::vector<serve::ModelCard> cards;
    for (const KnownModel& known : room.models) {
        if (known.drafts) continue;  // nobody asks for it by name
        serve::ModelCard& card = cards.emplace_back(known.card);
        card.cost = known.cost;
        card.keep_alive = known.at_start ? serve::kForEver : kUsualKeepAlive;
        if (!s.keep_alive.empty()) card.keep_alive = *serve::parse_keep_alive(s.keep_alive);
    }
    return cards;
}

/// The tape that --record asks for; each life of the process has its own. Null where none is wanted.
Result<std::unique_ptr<runtime::Tape>> open_tape(const ServeSettings& s, const sched::House& house, const Life& life) {
    if (s.record.empty()) return std::unique_ptr<runtime::Tape>();
    const std::string path = life.restarts == 0 ? s.record : fmt::format("{}.{}", s.record, life.restarts);
    const auto on_end = [path](std::string_view why) {
        const char* reason = why == "full"   ? "the file is as long as it may become"
                             : why == "slow" ? "the disk is too slow"
                                             : "the disk took no more";
        spdlog::error("the record {} has stopped: {}; serving goes on", path, reason);
    };
    return runtime::Tape::open(path, house,
                               {.policy = s.policy,
                                .usual = *draft::speculation_named(s.speculate),
                                .key = {fresh_seed(), fresh_seed()},
                                .on_end = on_end});
}

/// The gap to promise: as asked, else kUsualGap or, where that is more, the largest floor of the models.
Micros choose_gap(const EngineRoom& room, uint32_t gap_ms) {
    if (gap_ms != 0) return gap_ms * kMicrosPerMilli;
    Micros gap = kUsualGap;
    for (const StepCost& cost : room.house.costs)
        if (cost != StepCost{}) gap = std::max(gap, sched::promise_for(cost, room.house.limits, 1, 0).floor);
    return gap;
}

/// What the promise costs, in words.
void announce_gap(const EngineRoom& room) {
    const Micros gap = room.house.limits.gap;
    const auto words = [](Micros span) { return format_duration(span * kNanosPerMicro); };
    for (size_t m = 0; m < room.house.costs.size(); m++) {
        if (room.models[m].model == nullptr || room.models[m].drafts) continue;
        const sched::Promise p = sched::promise_for(room.house.costs[m], room.house.limits, 1, 0);
        const std::string& name = room.models[m].card.name;
        spdlog::info("{}: at most {} between two words; beside one stream a step reads up to {} prompt tokens", name,
                     words(gap), p.chunk);
        if (gap < p.floor)
            spdlog::warn(
                "{}: this machine's own floor is {}, with {} tokens a step; below it, prompts are read at {} % "
                "of their best rate while somebody writes",
                name, words(p.floor), p.floor_chunk, p.rate_percent);
    }
}

/// Before the doors open: then models may come and go.
void announce_models(const EngineRoom& room, Nanos load_time) {
    size_t waiting = 0;
    for (const KnownModel& m : room.models) {
        waiting += m.model == nullptr;
        if (m.model == nullptr) continue;
        if (m.drafts) {
            spdlog::info("{} drafts for {} of the models: {} of weights", m.card.name,
                         room.house.draft->drafts_for.size(), format_size(m.model->weight_bytes()));
            continue;
        }
        spdlog::info("{}: {} of weights, {} tokens a request, {} tokens of keys and values in all", m.card.name,
                     format_size(m.model->weight_bytes()), m.card.context_tokens, m.card.kv_tokens);
    }
    if (waiting > 0) spdlog::info("{} more models are loaded when somebody asks for them", waiting);
    spdlog::info("computing with {} threads, {}; loaded in {}", room.pool->threads(), room.table->name,
                 format_duration(load_time));
}

/// The thread that serves. A start that ends before its time, by an error or an exception, closes the doors.
class DoorsThread {
  public:
    DoorsThread(serve::Server& server, std::atomic<bool>& leaving)
        : server_(server), thread_([&server, &leaving] {
              if (Status ended = server.run(); !ended) spdlog::error("{}", ended.error().message);
              leaving = true;
          }) {}
    ~DoorsThread() {
        if (thread_.joinable()) server_.stop();
    }
    void join() { thread_.join(); }

  private:
    serve::Server& server_;
    std::jthread thread_;
};

int serve_here(const ServeSettings& s, const Life& life) {
    metrics::Metrics metrics(kUsualGap * kNanosPerMicro);
    auto opened = serve::Server::open(options_of(s, life), metrics);
    if (!opened) return fail(std::move(opened).error());
    std::unique_ptr<serve::Server> server = *std::move(opened);
    const uint16_t port = server->port();
    if (life.port_pipe >= 0 && life.port == 0 && ::write(life.port_pipe, &port, sizeof port) < 0)
        spdlog::warn("a restart may use another port");
    server->engine_restarts(life.restarts);

    std::atomic<bool> leaving{false};
    DoorsThread http(*server, leaving);
    const Nanos begin = steady_now();
    Progress bar("loading");
    ComputeSettings compute = s.compute;
    compute.on_first_use = true;
    auto room = EngineRoom::open(compute, [&](const std::string& name, uint64_t done, uint64_t total) {
        bar.show(done, total, fmt::format("{} ({} of {})", name, format_size(done), format_size(total)));
        server->loading(total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total));
        return !leaving.load();
    });
    bar.clear();
    if (!room) {
        return leaving.load() ? 0 : fail(room.error());
    }
    if (s.policy == "cadence") {
        Progress measuring("measuring");
        measure_costs(**room, [&](const std::string& name, uint64_t done, uint64_t total) {
            measuring.show(done, total, name);
            return !leaving.load();
        });
    }
    (*room)->house.limits.gap = choose_gap(**room, s.gap_ms);
    metrics.stall_limit((*room)->house.limits.gap * kNanosPerMicro);
    auto tape = open_tape(s, (*room)->house, life);
    if (!tape) return fail(tape.error());
    {
        serve::MachineCard machine = machine_of(**room, s);  // before the engine computes anything
        Works works(**room, s, *server, *std::move(tape));
        const auto memory =
            s.compute.model_memory.empty() ? std::nullopt : std::optional(*parse_size(s.compute.model_memory));
        RoomLoader loader(**room, works.inbox, works.fanout, memory, s.policy == "cadence");
        announce_gap(**room);
        announce_models(**room, steady_now() - begin);
        server->ready(cards_of(**room, s), works.inbox, works.fanout, std::move(machine), &loader);
        fmt::print("Cadans listens on {}\n", server->address());
        std::fflush(stdout);
        http.join();
        works.engine.stop();
        server.reset();  // whatever it still holds of the inbox goes first
    }
    return 0;
}

}  // namespace

int serve_command(const ServeSettings& settings) {
    if (!is_loopback(settings.host) && settings.api_key.empty() && !settings.insecure_bind) {
        return fail(bad_input(fmt::format(
            "listening on {} lets others in: give --api-key, or --insecure-no-key if that is meant", settings.host)));
    }
    return supervise([&](const Life& life) { return serve_here(settings, life); });
}

}  // namespace cadans::apps
