// Rows of the last layer into the vector that a sequence asks for.
#pragma once

#include <span>

#include "engine/forward.h"
#include "flow/step.h"

namespace cadans::engine {

/// Takes what counts of an item's rows, which the last Forward::run() computed; behind the prompt's last row the vector
/// is complete. Items of a mean come with all their rows, from position 0 on: their sequence takes nothing from cached
/// pages, and one that was preempted begins again.
///
/// item       with an embedding of the model's width
/// first_row  of the batch
/// row        [width] f32, to work in
/// Returns    false when a number is none
/// Cost       a norm and an addition for each row that counts; no allocation
bool pool_rows(const StepItem& item, uint32_t first_row, const Forward& forward, std::span<float> row);

}  // namespace cadans::engine
