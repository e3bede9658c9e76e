// A finished request as spans of a trace: one for the whole, one for each phase.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/units.h"
#include "metrics/figures.h"
#include "metrics/request_record.h"

namespace cadans::metrics {

/// Where a trace goes on, as a `traceparent` field says.
struct TraceParent {
    std::string trace_id;  ///< 32 lower-case hexadecimal digits
    std::string span_id;   ///< 16, of whoever asked
    bool sampled = true;
};

/// Reads a `traceparent`. Nothing where it is malformed: then a trace of its own begins. Source: W3C Trace Context,
/// section 3.2; a later version is read as far as version 00 goes.
std::optional<TraceParent> read_traceparent(std::string_view field);

using SpanValue = std::variant<std::string, int64_t, double, bool>;

struct Span {
    std::string name;
    Nanos begin = 0, end = 0;  ///< steady clock
    std::vector<std::pair<std::string, SpanValue>> attributes = {};
};

/// The phases of a record that is done, in order of their begin: parse, tokenize, load, queue, prefill, decode,
/// preempted, writing. Those that did not occur are left out. Pure.
std::vector<Span> phase_spans(const RequestRecord& record, const Figures& figures);

}  // namespace cadans::metrics
