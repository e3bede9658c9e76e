// The commands of `cadans`. Each returns the process's exit code: 0 done, 1 bad input, 2 wrong usage, 70 ours,
// 130 interrupted.
#pragma once

#include "apps/stderr_text.h"
#include "base/result.h"

namespace cadans::apps {

struct BenchServeSettings;
struct BenchSettings;
struct ExplainSettings;
struct InspectSettings;
struct PlanSettings;
struct RunSettings;
struct ServeSettings;
struct SimulateSettings;
struct TopSettings;

constexpr int kInterrupted = 130;

int serve_command(const ServeSettings& settings);
int run_command(RunSettings settings);
int bench_command(BenchSettings settings);
int bench_serve_command(const BenchServeSettings& settings);
int simulate_command(const SimulateSettings& settings);
int plan_command(const PlanSettings& settings);
int inspect_command(const InspectSettings& settings);
int explain_command(const ExplainSettings& settings);
int top_command(const TopSettings& settings);

/// What the process ends with after this trouble: 1, or 70 where it was ours (the reader of a model file died).
inline int exit_code_of(const Error& error) noexcept { return error.code == ErrorCode::internal ? 70 : 1; }

/// Says it on stderr; returns what the process ends with.
inline int fail(const Error& error) {
    to_stderr("cadans: {}\n", error.message);
    return exit_code_of(error);
}

}  // namespace cadans::apps
