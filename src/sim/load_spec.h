// Workloads out of a formula: how people or machines might ask.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "sim/workload.h"

namespace cadans::sim {

/// SPEC is a kind with settings: `KIND` or `KIND:key=value,key=value`.
///   poisson     independent arrivals            rate (1), requests (1000), prompt (512), output (128), spread (0.8)
///   gamma       burstier or steadier            the same, and cv (2): deviation of the pauses over their mean
///   household   days of a few people at home    people (4), days (1): chats that resend their history, now and
///               then a document to read, titles in the background; most of it in the evening
/// prompt and output are medians in tokens of a lognormal with that spread (0: always so many). Pure in
/// (spec, seed). Errors: bad_input, naming what is not understood.
Result<Workload> make_load(std::string_view spec, uint64_t seed);

}  // namespace cadans::sim
