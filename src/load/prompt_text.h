// Words for the rows of a workload: without meaning, and alike exactly as far as the rows are.
#pragma once

#include <cstdint>
#include <string>

#include "sim/workload.h"

namespace cadans::load {

/// Text of about workload.arrivals[row].prompt tokens, at `tokens_per_word`. Rows whose blocks begin alike begin with
/// the same words; rows without blocks are like no other. Pure in its arguments. At least one word.
std::string prompt_text(const sim::Workload& workload, size_t row, double tokens_per_word, uint64_t seed);

}  // namespace cadans::load
