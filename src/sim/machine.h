// The machine that is simulated: what its steps cost, how much it holds, and which policy runs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "flow/step_cost.h"
#include "sim/link.h"
#include "sim/simulation.h"

namespace cadans::sim {

/// A fitted cost with the name under which records tell of it.
struct Fit {
    std::string name;
    StepCost cost;
    Unsteadiness unsteady = {};
    std::optional<KvShape> kv = {};  ///< of the model it was fitted with, where that is told
};

/// The table used without --fit: about Llama-3.2-1B in 4 bits on two cores of a desktop.
Fit built_in_fit();

/// Reads what `cadans bench --fit --json` printed. Errors: those of reading; bad_input naming the field.
Result<Fit> read_fit(const std::string& path);

/// How much the machine holds. Token counts, not bytes: a page costs as many bytes as it has tokens.
struct Room {
    uint32_t context_tokens = 131'072;  ///< one request
    uint32_t kv_tokens = 262'144;       ///< all together
    uint32_t running = 16;
    uint32_t queue = 64;
    bool prefix_cache = true;
};

/// Names that machine_of() knows, the default first.
const std::vector<std::string>& policy_names();

/// Errors: bad_input for an unknown name, naming those there are.
Result<sched::Policy> policy_named(std::string_view name);

/// The machine of a record under that policy: its limits and pages. `gap`: another than it had. Errors: as
/// policy_named().
Result<Machine> recorded_machine(std::string_view policy, const sched::House& house, const Fit& fit,
                                 std::optional<Nanos> gap);

/// A machine under that policy. `gap`: the longest gap anyone should feel, from which a policy takes its chunk.
/// Errors: as policy_named().
Result<Machine> machine_of(std::string_view policy, const Room& room, const Fit& fit, Nanos gap);

/// The most rows of a step that fits `gap` when they are a prompt's, kIsolatedContext tokens deep; 1 to `most`.
/// Sarathi-Serve's token budget.
uint32_t largest_budget(const StepCost& cost, Nanos gap, uint32_t most);

}  // namespace cadans::sim
