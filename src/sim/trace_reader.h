// Workloads that others recorded: the public traces, each told from its first line.
#pragma once

#include <string>

#include "base/result.h"
#include "sim/workload.h"

namespace cadans::sim {

/// Reads a trace. Known forms:
///   Azure's 2023 CSV (TIMESTAMP, ContextTokens, GeneratedTokens);
///   Mooncake's JSON lines (timestamp in ms, input_length, output_length, hash_ids of 512 tokens);
///   a CSV of lengths (num_prefill_tokens, num_decode_tokens): no times;
///   a ServeGen chunk (windows of 600 s; the lengths lie beside it in ...-dataset.json), drawn from `seed`;
///   a server's record (`cadans serve --record`): its arrivals and how long their answers turned out to be.
/// A prompt or answer of no tokens counts as one. Errors: those of reading; bad_input with the line.
Result<Workload> read_trace(const std::string& path, uint64_t seed);

}  // namespace cadans::sim
