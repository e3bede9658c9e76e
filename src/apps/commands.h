// The commands of `cadans`, each added to the one command line.
#pragma once

#include <CLI/CLI.hpp>

#include "base/result.h"

namespace cadans::apps {

constexpr int kInterrupted = 130;

/// Each adds its subcommand; running it sets the process's exit code: 0 done, 1 bad input, 2 wrong usage, 70 ours,
/// 130 interrupted.
void add_serve(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_simulate(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);

/// What the process ends with after this trouble: 1, or 70 where it was ours (the reader of a model file died).
inline int exit_code_of(const Error& error) noexcept { return error.code == ErrorCode::internal ? 70 : 1; }

}  // namespace cadans::apps
