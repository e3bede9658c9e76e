// What happens now, once or as a stream, and what the machine is.
#include <algorithm>

#include "base/clock.h"
#include "serve/dialects/json_writer.h"
#include "serve/doors.h"
#include "serve/record/now_json.h"

namespace cadans::serve {

namespace {

constexpr size_t kStepsInAFrame = 64;
constexpr double kPicosPerSecond = 1e12;
constexpr uint32_t kUsualChunk = 512;  ///< rows of a step that reads a prompt well

void write_cost(JsonWriter& json, const std::optional<StepCost>& cost) {
    if (!cost) return void(json.null());
    json.object().key("weights_ps").number(cost->weights_ps).key("row_ps").number(cost->row_ps);
    json.key("step_ps").number(cost->step_ps).key("prompt_key_ps").number(cost->prompt_key_ps);
    json.key("decode_key_ps").number(cost->decode_key_ps).key("logits_ps").number(cost->logits_ps).close();
}

/// Tokens a second of steps of so many rows, by the table; null without one.
void write_best_rate(JsonWriter& json, const std::optional<StepCost>& cost, uint32_t rows, uint32_t logits) {
    if (!cost) return void(json.null());
    StepShape shape;
    cost->add(shape, 0, rows, logits);
    const auto picos = static_cast<double>(cost->unscaled_ps(shape));
    picos > 0 ? json.number(rows * kPicosPerSecond / picos) : json.null();
}

const char* name_of(ResidentSet::State state) {
    constexpr const char* kNames[] = {"on_disk", "loading", "resident"};
    return kNames[static_cast<size_t>(state)];
}

void write_model(JsonWriter& json, const ServedModel& model, const ModelKeeper& keeper) {
    json.object().key("name").text(model.name).key("context_tokens").number(model.context_tokens);
    json.key("trained_context_tokens").number(model.trained_context_tokens).key("kv_tokens").number(model.kv_tokens);
    json.key("weight_bytes").number(model.file.resident_bytes).key("parameters").number(model.file.parameters);
    json.key("quantization")
        .text(model.file.quantization)
        .key("state")
        .text(name_of(keeper.models().state(model.model)));
    json.key("memory_bytes").number(model.memory_bytes).key("loads").number(keeper.loads(model.model));
    json.key("last_load_ns");
    const std::optional<Nanos> last_load = keeper.last_load(model.model);
    last_load ? json.number(*last_load) : json.null();
    json.key("has_template").boolean(model.chat_template != nullptr);
    const std::optional<StepCost> cost = model.step_cost();
    write_cost(json.key("cost"), cost);
    write_best_rate(json.key("best_prompt_tokens_per_second"), cost, kUsualChunk, 1);
    write_best_rate(json.key("best_output_tokens_per_second"), cost, 1, 1);
    json.key("work").object().key("operations_per_row").number(model.work.operations_per_row);
    json.key("operations_per_key").number(model.work.operations_per_key);
    json.key("weight_bytes").number(model.work.weight_bytes + model.work.head_bytes);
    json.key("bytes_per_key").number(model.work.bytes_per_key);
    json.key("window_tokens").number(model.work.window_tokens);
    json.key("window_share").number(model.work.window_share).close();
    json.close();
}

}  // namespace

Snapshot Doors::snapshot() const {
    Snapshot out;
    out.at = steady_now();
    out.unix_ms = unix_millis();
    out.draining = readiness_.draining;
    out.stall_limit = metrics_.stall_limit();
    if (const House* house = readiness_.house) {
        out.ready = !out.draining && readiness_.failure == nullptr;
        out.occupancy = house->fanout.occupancy();
        out.limits = house->machine.limits;
    }
    out.seconds_from = Seconds::newest_told(out.at) - Seconds::kKept + 1;
    return out;
}

Opened Doors::now(const HttpRequest&) {
    HttpReply reply;
    JsonWriter json(reply.body);
    write_now(json, board_, snapshot());
    return reply;
}

/// Steps and the state of things, a few times a second.
class Doors::NowFeed final : public Feed {
  public:
    explicit NowFeed(Doors& doors) : doors_(doors) { ++doors_.feeds_; }
    ~NowFeed() override { --doors_.feeds_; }

    void write(std::string& out) override {
        std::string steps;
        const bool first = seconds_from_ == 0;
        if (first && !doors_.board_.steps().empty()) newest_step_ = doors_.board_.steps().back().number;
        const int64_t changed_from = earliest_second_changed();
        newest_step_ = write_steps(steps, doors_.board_, newest_step_, kStepsInAFrame);
        if (!steps.empty()) out.append("event: steps\ndata: ").append(steps).append("\n\n");
        Snapshot snapshot = doors_.snapshot();
        if (!first) snapshot.seconds_from = std::max(snapshot.seconds_from, std::min(seconds_from_, changed_from));
        seconds_from_ = Seconds::newest_told(snapshot.at) + 1;
        out += "event: now\ndata: ";
        JsonWriter json(out);
        write_now(json, doors_.board_, snapshot);
        out += "\n\n";
    }

  private:
    // A step that has ended since the last frame may have begun in seconds that were told before: they are told again.
    int64_t earliest_second_changed() const {
        const std::deque<LiveStep>& steps = doors_.board_.steps();
        const auto fresh = std::ranges::upper_bound(steps, newest_step_, {}, &LiveStep::number);
        return fresh == steps.end() ? INT64_MAX : fresh->begin / kNanosPerSecond;
    }

    Doors& doors_;
    uint64_t newest_step_ = 0;
    int64_t seconds_from_ = 0;
};

Opened Doors::now_stream(const HttpRequest&) {
    if (feeds_ >= kMostFeeds)
        return error_reply({ErrorCode::busy, "too many watch already; GET /cadans/v1/now tells the same once", {}},
                           Dialect::openai);
    return std::unique_ptr<Feed>(std::make_unique<NowFeed>(*this));
}

Opened Doors::machine(const HttpRequest&) {
    HttpReply reply;
    JsonWriter json(reply.body);
    const House* house = readiness_.house;
    const MachineCard card = house != nullptr ? house->machine : MachineCard{};
    json.object();
    json.key("version").text(card.version.empty() ? options_.version : card.version);
    json.key("cpu").text(card.cpu).key("threads").number(card.threads).key("isa").text(card.isa);
    json.key("limits");
    if (card.limits) {
        json.object().key("operations_per_second").number(card.limits->operations_per_second);
        json.key("bytes_per_second").number(card.limits->bytes_per_second).close();
    } else {
        json.null();
    }
    json.key("memory").object().key("page_bytes_budget").number(card.page_bytes).close();
    json.key("models").array();
    if (house != nullptr)
        for (const ServedModel& model : house->catalog.models()) write_model(json, model, house->keeper);
    json.close();
    json.key("settings").object();
    json.key("host").text(options_.host).key("port").number(uint32_t{options_.port}).key("policy").text(card.policy);
    json.key("gap_ms");
    card.gap > 0 ? json.number(static_cast<double>(card.gap) / kNanosPerMilli) : json.null();
    json.key("stall_limit_ms").number(static_cast<double>(metrics_.stall_limit()) / kNanosPerMilli);
    json.key("queue").number(options_.queue_places).key("max_running").number(card.max_running);
    json.key("prefix_cache").boolean(card.prefix_cache).key("api_key").boolean(!options_.api_key.empty());
    const HistoryOptions& history = archive_.options();
    json.key("history").object().key("path");
    history.path.empty() ? json.null() : json.text(history.path);
    json.key("max_bytes").number(history.most_bytes).key("max_age_days").number(history.most_days);
    json.key("prompts").boolean(history.prompts).close();
    json.close();
    json.key("classes").array();
    for (uint32_t i = 0; i < kPriorities; ++i) json.text(name(static_cast<Priority>(i)));
    json.close();
    json.close();
    return reply;
}

}  // namespace cadans::serve
