// The thread that turns the loop: it reads the clock and sleeps, so that nothing below has to.
#pragma once

#include <thread>

#include "runtime/inbox.h"
#include "runtime/loop.h"

namespace cadans::runtime {

/// Starts turning on construction. An exception that reaches its entry (out of memory) ends the process
/// with status 70, as a failed check does: state would be half written. The loop and inbox outlive it.
class EngineThread {
  public:
    EngineThread(Loop& loop, Inbox& inbox);
    ~EngineThread();  ///< stop()

    /// Lets the step in flight end, ends every sequence with `cancelled`, publishes that, joins. Idempotent.
    /// To let them finish first: Inbox::drain(), then wait until Inbox::in_flight() is 0.
    void stop();

  private:
    void run(const std::stop_token& stop);

    Loop& loop_;
    Inbox& inbox_;
    std::jthread thread_;  ///< last: it uses the others
};

}  // namespace cadans::runtime
