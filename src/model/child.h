// Work that might not survive: run in a short-lived child with bounded memory and time and no network.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace cadans::model {

/// What the child may use up beyond what this process has now.
struct ChildLimits {
    uint64_t memory_bytes = uint64_t{2} << 30;
    uint32_t cpu_seconds = 60;
    std::chrono::milliseconds wall{120'000};
};

/// Runs `job` in a forked child and gives back what it returned. The child has no descriptors but its
/// report, cannot open a socket or start a program, and ends with this process.
///
/// job     must not log, nor wait for a thread: no other thread exists in the child
/// what    the subject of messages: "the reader of x.gguf"
/// Errors  those of job; internal ("… died (signal 11)") where the child did not live to tell, which is
///         the caller's exit code 70; io where no child could be made
/// Thread  thread-safe
Status run_in_child(const std::function<Status()>& job, const std::string& what, const ChildLimits& limits = {});

}  // namespace cadans::model
