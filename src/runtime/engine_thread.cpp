#include "runtime/engine_thread.h"

#include <cstdio>
#include <exception>

#include "base/check.h"
#include "base/clock.h"
#include "base/platform.h"
#include "sched/scheduler.h"

namespace cadans::runtime {

EngineThread::EngineThread(Loop& loop, Inbox& inbox)
    : loop_(loop), inbox_(inbox), thread_([this](const std::stop_token& stop) { run(stop); }) {}

EngineThread::~EngineThread() { stop(); }

void EngineThread::stop() {
    if (!thread_.joinable()) return;
    inbox_.cancel_all();
    thread_.request_stop();
    inbox_.wake();
    thread_.join();
}

void EngineThread::run(const std::stop_token& stop) {
    try {
        set_float_mode();
        while (true) {
            const bool stopping = stop.stop_requested();  // then this turn hears cancel_all
            const Loop::Next next = loop_.turn(steady_now());
            if (next.now) continue;
            if (stopping) return;
            inbox_.wait(next.wakeup == sched::kNever ? sched::kNever : next.wakeup - steady_now());
        }
    } catch (const std::exception& trouble) {
        char why[256];
        std::snprintf(why, sizeof why, "the engine thread catches nothing, but got: %s", trouble.what());
        check(false, why);
    }
}

}  // namespace cadans::runtime
