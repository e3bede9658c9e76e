// The work of a loaded model, counted from the shapes and types of its matrices.
#pragma once

#include "flow/model_facts.h"
#include "flow/model_work.h"
#include "model/weights.h"

namespace cadans::engine {

/// Windows are taken as if they saw all: for long contexts of such models the keys are counted too high.
ModelWork work_of(const model::Model& model, const ModelFacts& facts);

}  // namespace cadans::engine
