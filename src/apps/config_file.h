// cadans.toml: settings that neither a flag nor the environment gave.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cadans::apps {

/// One `name = value` of the file.
struct ConfigEntry {
    std::string name;
    std::vector<std::string> values;  ///< one, or the items of a list, as a flag would have them
    std::string where;                ///< "file:line", for messages
};

/// Errors: bad_input, with file and line.
Result<std::vector<ConfigEntry>> read_config(const std::string& path);

}  // namespace cadans::apps
