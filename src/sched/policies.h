// All policies by name.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sched/policy.h"

namespace cadans::sched {

/// "cadence" (the default), "prefill-first", "static-chunk", "fixed-batch", "alternate". None for any other name.
std::optional<Policy> policy_by_name(std::string_view name) noexcept;

/// The names, the default first.
std::vector<std::string_view> policy_names();

}  // namespace cadans::sched
