// All that is counted about the server, and its page for Prometheus.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "flow/occupancy.h"
#include "metrics/figures.h"
#include "metrics/histogram.h"
#include "metrics/request_record.h"

namespace cadans::metrics {

/// What a gauge shows at the moment of scraping: the caller gathers it.
struct Now {
    Occupancy occupancy;                   ///< from Fanout::occupancy()
    std::vector<std::string> model_names;  ///< by ModelId
    uint64_t engine_restarts = 0;
    uint64_t history_lost = 0;  ///< records that no disk took
    uint64_t spans_sent = 0, spans_lost = 0;
};

/// Thread-safe: counters are atomic, nothing locks. Every family is described in docs/metrics.md.
class Metrics {
  public:
    /// `stall_limit`: a gap between flushes longer than this counts as a stall.
    explicit Metrics(Nanos stall_limit);

    /// Another limit from now on.
    void stall_limit(Nanos limit) noexcept { stall_limit_.store(limit, std::memory_order_relaxed); }
    Nanos stall_limit() const noexcept { return stall_limit_.load(std::memory_order_relaxed); }

    /// Counts a request that is done. Call it at `done`, before the last frame is sent, so that a client
    /// that has the frame finds itself counted. `figures` are those of the record.
    void count(const RequestRecord& record, const Figures& figures);

    /// Counts how far off a forecast of a first token was; positive: it came later.
    void count_forecast(Nanos error) noexcept;

    /// Counts a request that was turned away before it had tokens (busy, too long, malformed).
    void count_refused() noexcept;

    /// The page: text/plain; version=0.0.4.
    std::string exposition(const Now& now) const;

    static constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

  private:
    struct ColdAndWarm {
        explicit ColdAndWarm(std::span<const Nanos> bounds) : warm(bounds), cold(bounds) {}
        Histogram warm, cold;
        Histogram& of(bool is_cold) noexcept { return is_cold ? cold : warm; }
    };

    std::atomic<Nanos> stall_limit_;
    std::array<std::atomic<uint64_t>, kOutcomes> requests_{};
    std::atomic<uint64_t> prompt_computed_{0}, prompt_cached_{0}, output_{0};
    std::atomic<uint64_t> drafts_accepted_{0}, drafts_rejected_{0};
    std::array<std::atomic<uint64_t>, kDraftHolds> draft_holds_{};
    std::atomic<uint64_t> preemptions_{0}, recomputed_{0}, stalls_{0};
    std::array<std::atomic<Nanos>, kCauses> causes_{};
    ColdAndWarm queue_, load_, prompt_, ttft_, total_;
    Histogram gap_, engine_gap_, per_token_;
    Histogram forecast_late_, forecast_early_;
};

}  // namespace cadans::metrics
