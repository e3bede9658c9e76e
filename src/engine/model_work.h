// The work of a model, counted from the shapes and types of its matrices.
#pragma once

#include "flow/model_facts.h"
#include "flow/model_work.h"
#include "model/memory.h"
#include "model/spec.h"

namespace cadans::engine {

/// Every layer of a model has keys and values of one size, so that windowed ones count by their number.
ModelWork work_of(const model::ModelSpec& spec, const model::MemoryEstimate& memory, const ModelFacts& facts);

}  // namespace cadans::engine
