// The flags of the commands that simulate.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace cadans::apps {

/// Empty, or why it is none. A minus would become a number near 2^64.
std::string is_seed(const std::string& text);

/// Adds the command; when it is given it runs and leaves its exit code.
void add_simulate(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);

}  // namespace cadans::apps
