// cadans bench: how fast this machine reads prompts and writes answers, each by itself.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/calibration.h"
#include "apps/commands.h"
#include "apps/engine_room.h"
#include "apps/progress.h"
#include "apps/settings.h"
#include "apps/stderr_text.h"
#include "base/clock.h"
#include "base/random.h"
#include "engine/machine_limits.h"
#include "kernels/probe.h"
#include "sched/chunk.h"

namespace cadans::apps {
namespace {

using Json = nlohmann::ordered_json;

/// One line of the table.
struct Measurement {
    const char* phase;
    uint32_t tokens, depth, batch, beside, threads;
    std::vector<double> rates;  ///< tokens a second of the whole batch, sorted
    double share;               ///< prefill: of the integer-dot peak; decode: of the read bandwidth

    bool is_prefill() const { return std::string_view(phase) == "prefill"; }
    double median() const { return rates[rates.size() / 2]; }
};

/// Measured beside the benchmark, each a second, all threads together.
struct Limits {
    double dot_operations, read_bytes;
};

/// Drives the executor with plans of its own: no scheduler, no queue, nothing but the two phases.
class Rig {
  public:
    Rig(EngineRoom& room, const BenchSettings& settings) : room_(room), settings_(settings) { greedy_.temperature = 0; }

    /// Tokens a second of reading `n` tokens of one sequence behind `depth` others, while `beside` more sequences, as
    /// deep, write a token in each of its steps.
    double prefill(uint32_t n, uint32_t depth, uint32_t beside) {
        lay_out(1 + beside, depth + n + 1);
        for (uint32_t b = 0; b <= beside; b++) step_through(b, 0, depth, 0);
        const Nanos begin = steady_now();
        step_through(0, depth, depth + n, beside);
        return n / seconds_since(begin);
    }

    /// Tokens a second of `batch` sequences that each write `n` tokens behind `depth` others.
    double decode(uint32_t n, uint32_t depth, uint32_t batch) {
        lay_out(batch, depth + n + 1);
        for (uint32_t b = 0; b < batch; b++) step_through(b, 0, depth, 0);
        const Nanos begin = steady_now();
        for (uint32_t t = 0; t < n; t++) {
            plan_.clear();
            for (uint32_t b = 0; b < batch; b++) add_item(b, depth + t, 1, Phase::decode);
            run_step();
        }
        return static_cast<double>(n) * batch / seconds_since(begin);
    }

  private:
    static double seconds_since(Nanos begin) { return static_cast<double>(steady_now() - begin) / 1e9; }

    void lay_out(uint32_t batch, uint32_t tokens) {
        const ModelFacts& facts = room_.house.models.front();
        const uint32_t pages = (tokens + kPageTokens - 1) / kPageTokens;
        tokens_.assign(batch, {});
        pages_.assign(batch, {});
        for (uint32_t b = 0; b < batch; b++) {
            for (uint32_t t = 0; t < tokens; t++)
                tokens_[b].push_back(TokenId{static_cast<uint32_t>(mix64(b * 1'000'003ULL + t) % facts.vocab_size)});
            for (uint32_t p = 0; p < pages; p++) pages_[b].push_back(PageId{b * pages + p});
        }
    }

    void step_through(uint32_t b, uint32_t from, uint32_t to, uint32_t beside) {
        uint32_t words = from;
        for (uint32_t at = from; at < to; at += settings_.compute.prefill_chunk, words++) {
            plan_.clear();
            for (uint32_t w = 1; w <= beside; w++) add_item(b + w, words, 1, Phase::decode);
            add_item(b, at, std::min(settings_.compute.prefill_chunk, to - at), Phase::prefill);
            plan_.items.back().sample = at + plan_.items.back().count == to;
            run_step();
        }
    }

    void add_item(uint32_t b, uint32_t first, uint32_t count, Phase phase) {
        StepItem item;
        item.seq = SeqId{b};
        item.known = {tokens_[b].data(), first + count};
        item.first = first;
        item.count = count;
        item.phase = phase;
        item.sample = phase == Phase::decode;
        item.sampling = &greedy_;
        item.group_count = static_cast<uint32_t>(room_.house.models.front().groups.size());
        for (uint32_t g = 0; g < item.group_count; g++) item.pages[g] = {0, pages_[b]};
        plan_.items.push_back(item);
        plan_.rows_by_phase[static_cast<uint8_t>(phase)] += count;
    }

    void run_step() {
        room_.executor->submit(plan_);
        room_.executor->poll();
    }

    EngineRoom& room_;
    const BenchSettings& settings_;
    SamplingParams greedy_;
    StepPlan plan_;
    std::vector<std::vector<TokenId>> tokens_;
    std::vector<std::vector<PageId>> pages_;
};

void run_all(EngineRoom& room, const BenchSettings& s, const Limits& limits, std::vector<Measurement>& out) {
    Rig rig(room, s);
    const ModelWork work = room.models.front().card.work;
    const auto measure = [&](const char* phase, uint32_t tokens, uint32_t depth, uint32_t batch, uint32_t beside,
                             const auto& run) {
        Measurement m{phase, tokens, depth, batch, beside, room.pool->threads(), {}, 0};
        run();  // warm-up
        for (uint32_t i = 0; i < s.repeat; i++) m.rates.push_back(run());
        std::ranges::sort(m.rates);
        if (m.is_prefill())
            m.share = m.median() * work_of(work, depth, tokens, 0).operations / tokens / limits.dot_operations;
        else
            m.share = m.median() / batch *
                      (work.weight_bytes + work.head_bytes + batch * work_of(work, depth + tokens / 2, 1, 1).bytes) /
                      limits.read_bytes;
        out.push_back(std::move(m));
    };
    for (const uint32_t depth : s.depth) {
        for (const uint32_t beside : s.beside)
            for (const uint32_t n : s.prompt)
                if (n != 0) measure("prefill", n, depth, 1, beside, [&] { return rig.prefill(n, depth, beside); });
        for (const uint32_t batch : s.batch)
            for (const uint32_t n : s.generate)
                if (n != 0) measure("decode", n, depth, batch, 0, [&] { return rig.decode(n, depth, batch); });
    }
}

Json as_json(const Measurement& m, const EngineRoom& room, const Limits& limits) {
    Json record = {
        {"phase", m.phase},
        {"tokens", m.tokens},
        {"depth", m.depth},
        {"batch", m.batch},
        {"threads", m.threads},
        {"isa", room.table->name},
        {"model", room.models.front().card.name},
        {"weights", room.models.front().card.file.quantization},
        {"tokens_per_second", {{"min", m.rates.front()}, {"median", m.median()}, {"max", m.rates.back()}}},
        {"limits",
         {{"dot_operations_per_second", limits.dot_operations}, {"read_bytes_per_second", limits.read_bytes}}}};
    if (m.is_prefill()) record["beside"] = m.beside;
    record[m.is_prefill() ? "share_of_peak" : "share_of_bandwidth"] = m.share;
    return record;
}

void print_table(const std::vector<Measurement>& all, const EngineRoom& room, const Limits& limits) {
    fmt::print("{} ({}), {}, {} threads; integer dot {:.0f} GOP/s, memory {:.1f} GB/s\n\n",
               room.models.front().card.name, room.models.front().card.file.quantization, room.table->name,
               room.pool->threads(), limits.dot_operations / 1e9, limits.read_bytes / 1e9);
    fmt::print("| phase   | tokens | depth | batch | beside | tokens/s |    min |    max | share |\n");
    fmt::print("| ------- | -----: | ----: | ----: | -----: | -------: | -----: | -----: | ----: |\n");
    for (const Measurement& m : all)
        fmt::print("| {:<7} | {:>6} | {:>5} | {:>5} | {:>6} | {:>8.1f} | {:>6.1f} | {:>6.1f} | {:>3.0f} % |\n", m.phase,
                   m.tokens, m.depth, m.batch, m.beside, m.median(), m.rates.front(), m.rates.back(), m.share * 100);
    fmt::print("\n");
}

/// The longest sequence and the largest batch that the rows of the table need.
void make_room(BenchSettings& s) {
    const uint32_t longest =
        std::max(std::ranges::max(s.prompt), std::ranges::max(s.generate)) + std::ranges::max(s.depth) + 1;
    s.compute.context = (longest + kPageTokens - 1) / kPageTokens * kPageTokens;
    s.compute.max_running = std::max(std::ranges::max(s.batch), 1 + std::ranges::max(s.beside));
}

/// Whether the pages of the largest row of the table are there; every group of pages is laid out alike.
Status check_room(const EngineRoom& room, const BenchSettings& s) {
    const auto pages = [&](uint32_t sequences, uint32_t tokens) {
        const uint64_t each = (uint64_t{tokens} + std::ranges::max(s.depth) + kPageTokens) / kPageTokens;
        return tokens == 0 ? 0 : sequences * each;
    };
    const uint64_t needed = std::max(pages(1 + std::ranges::max(s.beside), std::ranges::max(s.prompt)),
                                     pages(std::ranges::max(s.batch), std::ranges::max(s.generate)));
    for (const PageGroupFacts& group : room.house.models.front().groups) {
        if (needed * group.bytes_per_page <= room.house.page_bytes) continue;
        return Error{
            ErrorCode::no_memory,
            fmt::format("the largest row needs {} for keys and values, and there are {}: raise --kv-memory, or "
                        "measure less at once",
                        format_size(needed * group.bytes_per_page), format_size(room.house.page_bytes))};
    }
    return Ok{};
}

void print_fit(const engine::CostTable& table, const EngineRoom& room) {
    const StepCost& cost = table.fit.cost;
    const auto nanos = [](uint64_t picos) { return format_duration(static_cast<Nanos>(picos / 1000)); };
    fmt::print("{}, {}, {} threads, {}\n\n", table.key.model, table.key.isa, table.key.threads, table.key.cpu);
    fmt::print("A step takes the larger of {} (weights) and {} a row, and {},\n", nanos(cost.weights_ps),
               nanos(cost.row_ps), nanos(cost.step_ps));
    fmt::print(
        "and {:.1f} ns for each key that a prompt's row looks at, {:.1f} ns for each that a writing row looks at,\n",
        static_cast<double>(cost.prompt_key_ps) / 1e3, static_cast<double>(cost.decode_key_ps) / 1e3);
    fmt::print("and {} for each row that is drawn from.\n", nanos(cost.logits_ps));
    fmt::print("Error of its predictions: {:.1f} % in the middle, {:.1f} % at the 90th percentile.\n",
               100 * table.fit.median_error, 100 * table.fit.p90_error);
    const sched::Promise promise = sched::promise_for(cost, room.house.limits, 1, 0);
    fmt::print("The floor of the gap beside one stream: {} with {} prompt tokens a step.\n",
               format_duration(promise.floor * kNanosPerMicro), promise.floor_chunk);
}

/// Measures the cost table anew, keeps it for the server, and prints it.
int fit(BenchSettings s) {
    s.compute.threads = s.threads.empty() ? 0 : s.threads.front();
    Progress loading("loading");
    auto room = EngineRoom::open(s.compute, [&](const std::string& name, uint64_t done, uint64_t total) {
        loading.show(done, total, name);
        return true;
    });
    loading.clear();
    if (!room) return fail(room.error());
    Progress measuring("measuring");
    const auto table = cost_table_of(**room, (*room)->models.front(), true,
                                     [&](const std::string& name, uint64_t done, uint64_t total) {
                                         measuring.show(done, total, name);
                                         return true;
                                     });
    measuring.clear();
    if (s.json)
        std::cout << engine::to_json(table);
    else
        print_fit(table, **room);
    return 0;
}

}  // namespace

int bench_command(BenchSettings s) {
    if (s.fit) return fit(std::move(s));
    make_room(s);
    Json records = Json::array();
    if (s.threads.empty()) s.threads = {0};
    for (const uint32_t threads : s.threads) {
        s.compute.threads = threads;
        Progress bar("loading");
        auto room = EngineRoom::open(s.compute, [&](const std::string& name, uint64_t done, uint64_t total) {
            bar.show(done, total, name);
            return true;
        });
        bar.clear();
        if (!room) return fail(room.error());
        if (Status fits = check_room(**room, s); !fits) return fail(fits.error());
        const Limits limits{kernels::measure_dot_peak(*(*room)->table, *(*room)->pool),
                            engine::measure_read_bandwidth(*(*room)->pool)};
        std::vector<Measurement> all;
        run_all(**room, s, limits, all);
        if (!s.json) print_table(all, **room, limits);
        for (const Measurement& m : all) records.push_back(as_json(m, **room, limits));
    }
    if (s.json) std::cout << records.dump(2) << "\n";
    return 0;
}

}  // namespace cadans::apps
