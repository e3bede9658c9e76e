#include "metrics/spans.h"

#include <algorithm>

#include "base/hex.h"

namespace cadans::metrics {
namespace {

bool is_hex(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool all_zero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

}  // namespace

std::optional<TraceParent> read_traceparent(std::string_view field) {
    constexpr size_t kLength = 55;  // 00-TRACE-SPAN-FLAGS
    if (field.size() < kLength || field[2] != '-' || field[35] != '-' || field[52] != '-') return std::nullopt;
    const std::string_view version = field.substr(0, 2), trace = field.substr(3, 32), span = field.substr(36, 16);
    const std::string_view flags = field.substr(53, 2);
    if (!is_hex(version) || !is_hex(trace) || !is_hex(span) || !is_hex(flags)) return std::nullopt;
    if (version == "ff" || all_zero(trace) || all_zero(span)) return std::nullopt;
    if (field.size() > kLength && (version == "00" || field[kLength] != '-')) return std::nullopt;
    return TraceParent{std::string(trace), std::string(span), (hex_digit(flags[1]) & 1) != 0};
}

std::vector<Span> phase_spans(const RequestRecord& record, const Figures& figures) {
    const Nanos done = *record.done();
    std::vector<Span> spans;
    const auto add = [&](const char* name, Nanos begin, Nanos end) {
        if (begin < end) spans.push_back({name, begin, end});
    };
    if (record.parsed()) add("parse", record.accepted(), *record.parsed());
    if (record.parsed() && record.tokenized()) add("tokenize", *record.parsed(), *record.tokenized());
    for (const Interval& load : record.loads()) add("load", load.begin, load.end);
    if (record.queued()) add("queue", *record.queued(), record.first_scheduled().value_or(done));
    std::optional<Nanos> prefill_end, last_token;
    for (const RequestRecord::Stream& stream : record.streams()) {
        if (stream.prefill_end) prefill_end = std::max(prefill_end.value_or(0), *stream.prefill_end);
        if (stream.last_token) last_token = std::max(last_token.value_or(0), *stream.last_token);
    }
    if (record.first_scheduled()) {
        add("prefill", *record.first_scheduled(), std::min(prefill_end.value_or(done), done));
        if (!spans.empty() && spans.back().name == "prefill") {
            spans.back().attributes = {{"cadans.computed_tokens", int64_t{figures.computed_tokens}},
                                       {"cadans.cached_tokens", int64_t{figures.cached_tokens}}};
        }
    }
    if (prefill_end && last_token && *prefill_end < *last_token) {
        add("decode", *prefill_end, std::min(*last_token, done));
        spans.back().attributes = {{"gen_ai.usage.output_tokens", int64_t{figures.output_tokens}}};
    }
    for (const Interval& taken : record.preemptions()) add("preempted", taken.begin, taken.end);
    if (last_token) add("writing", *last_token, done);
    std::ranges::stable_sort(spans, {}, &Span::begin);
    return spans;
}

}  // namespace cadans::metrics
