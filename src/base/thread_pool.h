// A fixed set of threads that run one function together, again and again, with cheap barriers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace cadans {

/// `run(f)` calls f(thread, threads) once on each thread, the caller being thread 0, and returns when
/// all are done. `barrier(thread)` inside f waits for all. Workers spin a while, then sleep.
///
/// The partition is fixed: thread t of n always gets the same share of the same work.
/// Thread rule: one thread calls run(); barrier() only from inside f.
/// Cost: no allocation; a barrier among spinning threads is one cache-line round trip.
class ThreadPool {
  public:
    /// `threads` in all, the caller included; `pin[t]` is the processor of thread t (empty: not pinned).
    explicit ThreadPool(uint32_t threads, std::vector<int> pin = {});
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    uint32_t threads() const noexcept { return threads_; }

    template <class F>
    void run(F&& f) {
        using Body = std::remove_reference_t<F>;
        run_erased([](void* body, uint32_t t, uint32_t n) { (*static_cast<Body*>(body))(t, n); },
                   const_cast<void*>(static_cast<const void*>(&f)));
    }

    void barrier() noexcept;

  private:
    using Call = void (*)(void* body, uint32_t thread, uint32_t threads);
    void run_erased(Call call, void* body);
    void work(uint32_t thread);

    const uint32_t threads_;
    Call call_ = nullptr;
    void* body_ = nullptr;
    alignas(64) std::atomic<uint32_t> generation_{0};  ///< odd bit-pattern free: counts runs, also the futex word
    alignas(64) std::atomic<uint32_t> sleepers_{0};
    alignas(64) std::atomic<uint32_t> arrived_{0};
    alignas(64) std::atomic<uint32_t> phase_{0};
    std::atomic<bool> stop_{false};
    std::vector<std::jthread> workers_;
};

}  // namespace cadans
