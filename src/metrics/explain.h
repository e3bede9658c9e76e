// A finished request in plain sentences: what made its asker wait, and why its numbers do not contradict each other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "flow/event.h"
#include "flow/step_cost.h"
#include "metrics/figures.h"
#include "metrics/phrases.h"
#include "metrics/request_record.h"

namespace cadans::metrics {

/// All that the sentences are made of; as it is kept of a request, and what is known of the machine.
struct Explained {
    Figures figures;
    Outcome outcome = Outcome::stop;
    uint32_t stalls = 0;
    std::optional<uint32_t> remembered_tokens;  ///< of the prompt, for the next that begins alike
    std::optional<ReuseEnd> miss;               ///< why not more of it was cached
    uint32_t miss_position = 0;
    std::optional<cadans::StepCost> cost;  ///< of its model on this machine
};

struct Sentence {
    const char* about;  ///< first_word, cache, remembered, rates, guesses, gaps, longest_wait, outcome
    std::string text;
};

/// In the order in which they are read; at least one. The times in the first sentence are rounded so that they sum to
/// its total. Pure; the same for the same record.
std::vector<Sentence> explain(const Explained& request, Language language);

/// All of them, with a space between.
std::string joined(const std::vector<Sentence>& sentences);

/// How long the same prompt would take from here to its first word if it were sent again now, by the cost table and
/// what taking it in took this time. Nothing without a table, or where nothing is remembered.
std::optional<Nanos> again_after(const Explained& request);

}  // namespace cadans::metrics
