// The small parent of the serving process: starts it again when it dies of a fault of ours.
#pragma once

#include <cstdint>
#include <functional>

namespace cadans::apps {

/// What a serving process is told about its life so far.
struct Life {
    uint32_t restarts = 0;
    uint16_t port = 0;   ///< the port that the one before had; 0: this is the first
    int port_pipe = -1;  ///< where to write the port (uint16_t) once it is known
};

/// Runs `serve` in a child process and returns the exit code for the whole program. A child that ends with 70 or by
/// a signal is started again, once in ten minutes; a second death within that time ends everything with 70.
/// SIGTERM and SIGINT are handed on. Must be called before the process has other threads.
int supervise(const std::function<int(const Life&)>& serve);

}  // namespace cadans::apps
