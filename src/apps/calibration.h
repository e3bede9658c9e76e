// What steps cost on this machine: from an earlier start if nothing has changed, else measured now and kept.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/engine_room.h"
#include "engine/calibration.h"
#include "engine/cost_table.h"
#include "serve/models/machine_card.h"

namespace cadans::apps {

/// Told how far the measuring of a model is; returning false stops it.
using OnMeasure = std::function<bool(const std::string& name, uint64_t done, uint64_t total)>;

/// The table of one of the room's models; `anew`: whatever is kept. Before the first step of the engine thread.
/// Trouble with the file is a warning: the table is then measured at the next start too.
engine::CostTable cost_table_of(EngineRoom& room, KnownModel& known, bool anew, const OnMeasure& progress);

/// Fills the costs of all models of the room, and house.costs. One that is not in memory has those of an earlier start,
/// or none.
void measure_costs(EngineRoom& room, const OnMeasure& progress);

/// The same of a model that came while others may be computed: measured with `loaders` and room of its own. It is kept
/// where `undisturbed` said so all the time, else measured again when it comes again after the next start.
StepCost measure_beside(const EngineRoom& room, const KnownModel& known, ThreadPool& loaders,
                        const std::function<bool()>& undisturbed, const OnMeasure& progress);

/// What the machine can do at best, from an earlier start of this build or measured now (some tenths of a second) and
/// kept. Before the first step of the engine thread.
serve::MachineLimits machine_limits(EngineRoom& room);

/// $CADANS_HOME/state, else $XDG_STATE_HOME/cadans, else ~/.local/state/cadans.
std::string state_folder();

}  // namespace cadans::apps
