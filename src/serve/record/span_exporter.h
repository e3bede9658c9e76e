// Sends the spans of finished requests to an OpenTelemetry collector, as OTLP over HTTP in JSON.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "client/call.h"
#include "metrics/spans.h"

namespace cadans::serve {

/// One request's part of a trace.
struct Trace {
    std::optional<metrics::TraceParent> parent;  ///< of whoever asked; without one a trace of its own
    std::string state;                           ///< `tracestate`, handed on as it came
    metrics::Span whole;
    std::vector<metrics::Span> phases;
    bool failed = false;
};

/// Spans go out on a thread of their own, those of several requests together while the collector is slow. What it does
/// not take is lost, which is counted; no reply ever waits. No word of a prompt or an answer is in a span.
class SpanExporter {
  public:
    using Post = std::function<void(std::function<void()>)>;

    /// `collector`: its address; "/v1/traces" is added. Nothing: nothing is sent.
    SpanExporter(std::optional<client::Url> collector, Post post)
        : collector_(std::move(collector)), post_(std::move(post)) {}

    bool on() const noexcept { return collector_.has_value(); }

    /// Any thread. `steady_to_unix`: what is to be added to a steady time to have nanoseconds since 1970. Returns the
    /// trace's id.
    std::string send(Trace trace, Nanos steady_to_unix);

    /// What has not been sent by now is lost, and nothing is waited for any longer. Any thread.
    void give_up() { wanted_.request_stop(); }

    uint64_t sent() const noexcept { return sent_.load(std::memory_order_relaxed); }  ///< spans
    uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

  private:
    void deliver();

    std::optional<client::Url> collector_;
    Post post_;
    std::vector<std::string> batch_;  ///< spans, written; of the export thread
    std::stop_source wanted_;
    Nanos said_ = 0;  ///< when trouble was last told
    std::atomic<uint64_t> waiting_{0}, sent_{0}, lost_{0};
};

}  // namespace cadans::serve
