// The decisions of a recorded server, taken again by the same scheduler and compared one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "flow/step_cost.h"
#include "sim/report.h"

namespace cadans::sim {

/// Steps of one kind: what they took against what the costs of the record's begin say.
struct StepError {
    uint64_t steps = 0;
    double of_predicted = 0;  ///< time of all, as a multiple of what was predicted
    double p50 = 0, p90 = 0;  ///< |measured / predicted - 1|
};

struct Replay {
    std::string policy;
    std::string end;  ///< of the tape: TapeReader::end()
    uint64_t turns = 0, requests = 0;
    uint64_t plans = 0;                        ///< recorded
    uint64_t matched = 0;                      ///< of them, planned again exactly
    std::optional<uint64_t> first_difference;  ///< the turn, from 1, whose plan was another; what follows is not played
    uint64_t output_tokens = 0;
    std::vector<StepSample> steps;    ///< of the first model, where nobody else's rows were among them
    StepCost cost;                    ///< of that model when the record began
    StepError reading, writing;       ///< steps with a prompt's rows, and those of single rows only
    std::optional<Spread> between;    ///< from a step's end to the next one's begin, where that was planned in one go
    std::optional<Spread> ttft, gap;  ///< from taking a place to its tokens, as the engine saw them
};

/// Real inbox, loop and scheduler; results come from the tape. Errors: as TapeReader's; bad_input for a result that
/// is none of its plan, and for a policy that is unknown here.
Result<Replay> replay(const std::string& path);

}  // namespace cadans::sim
