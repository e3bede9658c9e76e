// A progress bar on stderr: one line that is redrawn on a terminal, a few plain lines elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"

namespace cadans::apps {

/// Thread rule: one thread.
class Progress {
  public:
    explicit Progress(std::string what);
    ~Progress();  ///< clears the line

    /// `done` of `total`, in any unit; `note` stands behind the bar.
    void show(uint64_t done, uint64_t total, const std::string& note);
    void clear();

  private:
    std::string what_;
    bool terminal_;
    bool drawn_ = false;
    Nanos last_ = 0;
    uint32_t last_tenth_ = 0;
};

}  // namespace cadans::apps
