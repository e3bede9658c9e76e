// A house on paper: all that planning depends on, as JSON and back.
#pragma once

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "sched/admission.h"

namespace cadans::runtime {

/// Everything but the size of the vocabulary, which a tape does not have.
nlohmann::ordered_json house_to_json(const sched::House& house);

/// The vocabulary of every model is then `vocab_size`. Errors: bad_input, naming the field.
Result<sched::House> house_from_json(const nlohmann::ordered_json& json, uint32_t vocab_size);

nlohmann::ordered_json cost_to_json(const StepCost& cost);

/// Errors: bad_input, naming the field.
Result<StepCost> cost_from_json(const nlohmann::ordered_json& json);

}  // namespace cadans::runtime
