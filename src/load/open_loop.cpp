#include "load/open_loop.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "load/prompt_text.h"

namespace cadans::load {
namespace {

constexpr Nanos kTell = kNanosPerSecond / 4;

/// This thread before others. False where that is not permitted.
bool go_first() {
    sched_param parameters{};
    parameters.sched_priority = sched_get_priority_min(SCHED_RR);
    return pthread_setschedparam(pthread_self(), SCHED_RR, &parameters) == 0;
}

void sleep_until(Nanos time) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::max<Nanos>(0, time - steady_now())));
}

}  // namespace

Played run_load(const Peer& peer, const sim::Workload& workload, const LoadOptions& options,
                const std::function<void(size_t ended)>& on_end) {
    const size_t count = workload.arrivals.size();
    Played played;
    played.answers.resize(count);
    played.late.resize(count);
    std::vector<std::string> prompts;  // made before the clock runs
    prompts.reserve(count);
    for (size_t row = 0; row < count; row++)
        prompts.push_back(prompt_text(workload, row, peer.tokens_per_word, options.seed));

    std::atomic<size_t> ended{0};
    std::atomic<bool> first{options.realtime};
    std::vector<std::jthread> threads;
    const Nanos begin = steady_now() + kNanosPerSecond / 20;
    for (size_t row = 0; row < count; row++) {
        const sim::Arrival& arrival = workload.arrivals[row];
        const Nanos due = begin + arrival.at - workload.arrivals.front().at;
        while (due - steady_now() > kTell) {
            sleep_until(std::min(due, steady_now() + kTell));
            on_end(ended);
        }
        sleep_until(due);
        if (row - ended >= options.most_at_once) {
            played.answers[row].error = "not sent: too many were open already";
            ended++;
            continue;
        }
        const uint32_t output =
            options.most_output == 0 ? arrival.output : std::min(arrival.output, options.most_output);
        threads.emplace_back([&, row, due, output] {
            if (options.realtime && !go_first()) first = false;
            Answer& answer = played.answers[row];
            answer = ask(peer, prompts[row], output);
            played.late[row] = answer.sent - due;
            ended++;
        });
    }
    while (ended < count) {
        sleep_until(steady_now() + kTell);
        on_end(ended);
    }
    threads.clear();
    Nanos from = 0, to = 0;
    for (const Answer& answer : played.answers) {
        if (answer.sent == 0) continue;
        from = from == 0 ? answer.sent : std::min(from, answer.sent);
        to = std::max(to, answer.end);
    }
    played.span = to - from;
    played.realtime = first;
    return played;
}

}  // namespace cadans::load
