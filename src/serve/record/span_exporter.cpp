#include "serve/record/span_exporter.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/clock.h"
#include "base/random.h"
#include "serve/dialects/json_writer.h"

namespace cadans::serve {

namespace {

constexpr uint64_t kMostWaiting = 1024;  ///< requests
constexpr size_t kMostInBatch = 512;     ///< spans
constexpr Nanos kPatience = 10 * kNanosPerSecond;
constexpr Nanos kSayEvery = 60 * kNanosPerSecond;
constexpr int kServerKind = 2, kInternalKind = 1, kErrorStatus = 2;  // of OTLP

std::string random_hex(int words) {
    std::string out;
    for (int i = 0; i < words; i++) out += fmt::format("{:016x}", fresh_seed() | 1);  // an id of zeros is none
    return out;
}

/// Whole numbers are strings in OTLP's JSON.
void write_attributes(JsonWriter& json, const metrics::Span& span) {
    json.array();
    for (const auto& [key, value] : span.attributes) {
        json.object().key("key").text(key).key("value").object();
        if (const auto* text = std::get_if<std::string>(&value)) json.key("stringValue").text(*text);
        if (const auto* whole = std::get_if<int64_t>(&value)) json.key("intValue").text(std::to_string(*whole));
        if (const auto* real = std::get_if<double>(&value)) json.key("doubleValue").number(*real);
        if (const auto* flag = std::get_if<bool>(&value)) json.key("boolValue").boolean(*flag);
        json.close().close();
    }
    json.close();
}

}  // namespace

std::string SpanExporter::send(Trace trace, Nanos steady_to_unix) {
    if (trace.parent && !trace.parent->sampled) return trace.parent->trace_id;
    const std::string trace_id = trace.parent ? trace.parent->trace_id : random_hex(2);
    const std::string root = random_hex(1);
    std::vector<std::string> spans;
    const auto write = [&](const metrics::Span& span, const std::string& id, const std::string& parent, int kind) {
        JsonWriter json(spans.emplace_back());
        json.object().key("traceId").text(trace_id).key("spanId").text(id);
        if (!parent.empty()) json.key("parentSpanId").text(parent);
        if (!trace.state.empty()) json.key("traceState").text(trace.state);
        json.key("name").text(span.name).key("kind").number(kind);
        json.key("startTimeUnixNano").text(std::to_string(span.begin + steady_to_unix));
        json.key("endTimeUnixNano").text(std::to_string(span.end + steady_to_unix));
        write_attributes(json.key("attributes"), span);
        json.key("status").object();
        if (trace.failed && id == root) json.key("code").number(kErrorStatus);
        json.close().close();
    };
    write(trace.whole, root, trace.parent ? trace.parent->span_id : std::string(), kServerKind);
    for (const metrics::Span& phase : trace.phases) write(phase, random_hex(1), root, kInternalKind);
    if (waiting_.load() >= kMostWaiting) {
        lost_.fetch_add(spans.size());
        return trace_id;
    }
    waiting_.fetch_add(1);
    post_([this, spans = std::move(spans)]() mutable {
        for (std::string& span : spans) batch_.push_back(std::move(span));
        // What comes while the collector is slow goes out together.
        if (waiting_.fetch_sub(1) == 1 || batch_.size() >= kMostInBatch) deliver();
    });
    return trace_id;
}

void SpanExporter::deliver() {
    if (wanted_.stop_requested()) {
        lost_.fetch_add(batch_.size());
        batch_.clear();
        return;
    }
    client::Request request{.method = "POST", .path = "/v1/traces"};
    request.fields.emplace_back("Content-Type", "application/json");
    request.patience = kPatience;
    request.stop = wanted_.get_token();
    JsonWriter json(request.body);
    json.object().key("resourceSpans").array().object();
    json.key("resource").object().key("attributes").array().object();
    json.key("key").text("service.name").key("value").object().key("stringValue").text("cadans").close();
    json.close().close().close();
    json.key("scopeSpans").array().object().key("scope").object().key("name").text("cadans").close();
    json.key("spans").array();
    for (const std::string& span : batch_) json.raw(span);
    json.close().close().close().close().close().close();
    const auto reply = client::call(*collector_, request);
    const bool taken = reply && reply->status >= 200 && reply->status < 300;
    (taken ? sent_ : lost_).fetch_add(batch_.size());
    batch_.clear();
    const Nanos now = steady_now();
    if (taken || (said_ != 0 && now - said_ < kSayEvery)) return;
    said_ = now;
    spdlog::warn("spans are lost: {}", reply ? fmt::format("the collector at {} answered with status {}",
                                                           collector_->authority(), reply->status)
                                             : reply.error().message);
}

}  // namespace cadans::serve
