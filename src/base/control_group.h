// Where the control group of this process keeps its limits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cadans {

enum class GroupVersion { one, two };

/// The folders of this process's group and of those above it, innermost first, each with a slash at its end; empty
/// where there is no such hierarchy. A limit of any of them holds. Inside a container the group's path may not exist
/// below the mount: the mount, which is always among them, then is the group.
///
/// controller  "memory", "cpu"; only version 1 has a hierarchy for each
/// root        stands before /proc and /sys, for tests
std::vector<std::string> control_group_folders(GroupVersion version, std::string_view controller,
                                               const std::string& root = "");

}  // namespace cadans
