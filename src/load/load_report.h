// What the clients of one server felt: percentiles of the four figures, and how it ended.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "load/open_loop.h"
#include "sim/report.h"

namespace cadans::load {

struct LoadReport {
    uint64_t requests = 0, finished = 0, refused = 0, failed = 0;  ///< finished + refused + failed = requests
    uint64_t prompt_tokens = 0, output_tokens = 0;                 ///< of those that finished
    std::optional<sim::Spread> ttft, gap;                          ///< as the clients' stop-watches say
    std::optional<sim::Spread> prompt;                             ///< reading the prompt, as the server says
    struct Rates {
        double p50 = 0, p10 = 0, p1 = 0, min = 0;  ///< half, 10 % and 1 % of answers are at most that fast; the slowest
    };
    std::optional<Rates> output_tokens_per_second;  ///< of each answer of two pieces or more, after its first piece
    double stalls_per_1000 = 0;                     ///< gaps over the limit, of output tokens
    double finished_per_second = 0, tokens_per_second = 0;  ///< of the whole machine, over the whole run
    std::optional<sim::Spread> late;                        ///< how long after its time a request was sent
    std::vector<Nanos> ttft_curve, gap_curve;               ///< for pictures
    std::map<std::string, uint64_t> errors;                 ///< what was said, how often
};

LoadReport report_of(const Played& played, Nanos stall);

}  // namespace cadans::load
