// The command line of the one program.
#pragma once

namespace cadans::apps {

/// Reads the flags, runs the command they name, and returns the process's exit code (interfaces: 0, 1, 2, 70, 130).
int run_command_line(int argc, char** argv);

}  // namespace cadans::apps
