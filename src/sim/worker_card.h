// What a kind of box can do, on a card: measured, or typed in for one that might be bought.
#pragma once

#include <string>

#include "base/result.h"
#include "sim/placement.h"

namespace cadans::sim {

/// The table's costs on a box that computes `compute` times and reads memory `memory_speed` times as fast as the
/// table's machine (both more than 0). What waits for arithmetic (a row through the layers, a prompt row at a key) goes
/// by the first; what waits for memory (the weights, a word's look at a key) by the second; a row through the head, of
/// which the table does not say what it waits for, by the slower of both; what a step costs anyway stays.
StepCost scaled_cost(const StepCost& table, double compute, double memory_speed);

/// Reads a card: `source` is a file, or the JSON object itself where it begins with '{'. Either a cost table, as
/// `cadans bench --fit --json` prints it on that box, or an object of
///     name          as it is to be called; else "box 1", "box 2" ...
///     compute, memory_speed   times the table's machine; 1
///     memory        for keys and values: bytes, or a SIZE such as "8G"; else the room that is given
///     running       requests computed side by side; else that of the room
///     price         of one box, in any currency; else none is known
/// A table may carry the last four too. Errors: those of reading; bad_input naming what is not understood, and for
/// memory that holds not even one page.
Result<Box> read_card(const std::string& source, const Fit& table, const Room& room, const KvShape& kv,
                      const std::string& name);

}  // namespace cadans::sim
