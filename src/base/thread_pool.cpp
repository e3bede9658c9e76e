#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include "base/check.h"
#include "base/platform.h"

namespace cadans {
namespace {

constexpr int kSpins = 20'000;       // some 50 to 100 us: the span between two steps of a busy engine
constexpr int kSpinsPerYield = 512;  // inside a barrier: give way when the box is busy with other work

void pin_this_thread(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<unsigned>(cpu), &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // best effort: a cgroup may forbid it
}

}  // namespace

ThreadPool::ThreadPool(uint32_t threads, std::vector<int> pin) : threads_(threads) {
    check(threads >= 1, "a pool has at least one thread");
    check(pin.empty() || pin.size() == threads, "one processor a thread");
    for (uint32_t t = 1; t < threads; t++)
        workers_.emplace_back([this, t, cpu = pin.empty() ? -1 : pin[t]] {
            if (cpu >= 0) pin_this_thread(cpu);
            work(t);
        });
    if (!pin.empty()) pin_this_thread(pin[0]);
}

ThreadPool::~ThreadPool() {
    stop_.store(true, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
}

void ThreadPool::run_erased(Call call, void* body) {
    if (threads_ == 1) return call(body, 0, 1);
    call_ = call;
    body_ = body;
    generation_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0) generation_.notify_all();
    call(body, 0, threads_);
    barrier();  // the end of the run: every worker's writes are visible to the caller
}

void ThreadPool::work(uint32_t thread) {
    set_float_mode();
    uint32_t seen = 0;
    for (;;) {
        int spins = 0;
        while (generation_.load(std::memory_order_acquire) == seen && spins < kSpins) cpu_relax(), spins++;
        if (generation_.load(std::memory_order_acquire) == seen) {
            sleepers_.fetch_add(1, std::memory_order_seq_cst);
            generation_.wait(seen, std::memory_order_seq_cst);
            sleepers_.fetch_sub(1, std::memory_order_seq_cst);
            if (generation_.load(std::memory_order_acquire) == seen) continue;
        }
        seen++;
        if (stop_.load(std::memory_order_relaxed)) return;
        call_(body_, thread, threads_);
        barrier();
    }
}

void ThreadPool::barrier() noexcept {
    if (threads_ == 1) return;
    const uint32_t phase = phase_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
        arrived_.store(0, std::memory_order_relaxed);
        phase_.store(phase + 1, std::memory_order_release);
        return;
    }
    for (int spins = 1; phase_.load(std::memory_order_acquire) == phase; spins++) {
        cpu_relax();
        if (spins % kSpinsPerYield == 0) sched_yield();
    }
}

}  // namespace cadans
