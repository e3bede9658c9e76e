// The policy the house is named for: no stream waits longer than the gap, and prompts get all the rest.
#pragma once

#include "sched/policy.h"

namespace cadans::sched {

/// Each step has one row for everyone who writes, and the largest piece of a prompt with which the step is predicted
/// to end within planned_step(). So at most one piece of prompt lies between two words of a stream, and
/// between the end of a prompt and its first word none. While nobody writes, the piece grows to what the machine likes
/// best.
///
/// Time      where those who write leave prompts less than a tenth of the machine, prompts get a tenth, and while
///           they alone take longer than the gap no new stream starts
///           a step that brings a first word is filled up to at most a quarter more than it takes
/// Order     by deadline: arrival + a grace + a multiple of the prompt's predicted time alone (by class), later by
///           what its scope has used beyond others, at most MachineTime::kForgiven. A short prompt thus overtakes a
///           long one. Who is late goes behind those who are not, but half of the time for prompts is for the late
///           one that came first: nobody waits longer than twice for what came before, however many come after
/// Background  gets rows only where no other prompt is due, and beside streams a quarter of their time; one that
///           had no row for kPatience counts as normal
///
/// Without a cost table every step is taken to fit. Source: stall-free batching, Agrawal et al. 2024 (Sarathi-Serve);
/// chunks by slack, Goel et al. 2025 (Niyama); relative slack, Agrawal et al. 2024 (Medha).
Policy cadence() noexcept;

/// Exposed for tests: when a sequence's first token is wanted, in microseconds.
Micros deadline_of(const View& view, const SequenceView& one) noexcept;

/// A background sequence that only gets what others leave.
bool only_slack(const View& view, const SequenceView& one) noexcept;

inline constexpr Nanos kPatience = 30 * kNanosPerSecond;

}  // namespace cadans::sched
