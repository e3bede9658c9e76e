// How long planning takes: 64 running, 1,000 waiting, under the cadence policy. Prints percentiles; 1 if over the
// limit.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/random.h"
#include "base/testing/allocations.h"
#include "sched/policies.h"
#include "sched/scheduler.h"

namespace cadans::sched {
namespace {

constexpr uint32_t kRunning = 64, kWaiting = 1000, kSteps = 20'000;
constexpr double kLimitMicros = 200;

House house(uint32_t waiting_pages) {
    House house;
    house.models = {ModelFacts{ModelId{0}, 32'000, 16'384, {{0, 1}}}};
    house.page_bytes = waiting_pages;
    house.limits = {.max_rows = 512 + kRunning, .max_running = kRunning, .prefill_chunk = 256, .gap = 200'000};
    StepCost cost;
    cost.weights_ps = 30'000'000'000;
    cost.row_ps = 500'000'000;
    cost.step_ps = 300'000'000;
    cost.prompt_key_ps = 100'000;
    cost.decode_key_ps = 200'000;
    cost.logits_ps = 800'000'000;
    house.costs = {cost};
    return house;
}

double percentile(std::vector<double>& sorted, double q) {
    return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1))];
}

int run() {
    Scheduler scheduler(house(100'000), *policy_by_name("cadence"));
    std::vector<Event> events;
    events.reserve(4096);
    StepResult result;
    result.items.reserve(kRunning);
    result.accepted.reserve(kRunning);
    std::vector<double> micros;
    micros.reserve(kSteps);
    uint64_t next = 1, allocated = 0;
    uint32_t inside = 0;
    Nanos now = 0;
    for (uint32_t step = 0; step < kSteps; step++) {
        for (; inside < kRunning + kWaiting; inside++, next++) {
            SequenceRequest request;
            request.seq = SeqId{next};
            request.request = RequestId{next};
            request.prompt.assign(1 + mix64(next) % 700, TokenId{static_cast<uint32_t>(mix64(next) % 32'000)});
            request.max_new_tokens = static_cast<uint32_t>(1 + mix64(next + 7) % 200);
            request.scope = mix64(next + 9) % 50;
            request.priority = static_cast<Priority>(mix64(next + 11) % 3);
            if (!scheduler.admit(std::move(request), now)) return 1;
        }
        events.clear();
        const uint64_t before = allocations_of_this_thread();
        const auto begin = std::chrono::steady_clock::now();
        const StepPlan* plan = scheduler.plan(now, events);
        const auto end = std::chrono::steady_clock::now();
        if (step > kSteps / 10) allocated += allocations_of_this_thread() - before;
        micros.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
        if (plan == nullptr) return 1;
        result.clear();
        result.id = plan->id;
        result.begin = now;
        result.end = now += 1'000 * scheduler.time().predict(*plan);
        for (const StepItem& item : plan->items) {
            const auto at = static_cast<uint32_t>(result.accepted.size());
            result.items.push_back({item.seq, item.count, at, at + item.sample, 0, 0, false});
            if (item.sample) result.accepted.push_back({TokenId{2}, 0.0F, 0, {}});
        }
        scheduler.commit(result, now, events);
        for (const Event& event : events) inside -= event.kind == EventKind::finished;
    }
    std::sort(micros.begin(), micros.end());
    const double p99 = percentile(micros, 0.99);
    std::printf(
        "%u running, %u waiting: planning takes %.1f us (P50), %.1f us (P99), %.1f us at most; %lu allocations\n",
        kRunning, kWaiting, percentile(micros, 0.5), p99, micros.back(), static_cast<unsigned long>(allocated));
    return p99 <= kLimitMicros && allocated == 0 ? 0 : 1;
}

}  // namespace
}  // namespace cadans::sched

int main() { return cadans::sched::run(); }
