// Finds the first stop string in a stream of text and lets nothing of it through.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cadans::text {

/// What one more piece of text settled.
struct StopOutput {
    std::string text;      ///< safe to send
    bool stopped = false;  ///< a stop string is complete; `text` ends just before it
    size_t which = 0;      ///< its place in the list, when stopped
};

/// Which stop string wins does not depend on how the text is cut: the one that is complete first, and of those that
/// end at the same byte the longest. Thread rule: one thread. Cost: bytes times number of stop strings.
class StopStrings {
  public:
    /// Empty strings are left out: they would stop everything.
    explicit StopStrings(std::vector<std::string> stops);

    /// After it has stopped, further text is dropped.
    StopOutput push(std::string_view piece);

    /// What was held back: no more text comes.
    std::string finish();

    bool stopped() const noexcept { return stopped_; }
    size_t held_bytes() const noexcept { return held_.size(); }  ///< not sent yet: it may begin a stop string

  private:
    struct Pattern {
        std::string text;
        std::vector<uint32_t> fallback;  // Knuth, Morris & Pratt 1977
        size_t matched = 0;
        size_t place = 0;
    };

    std::vector<Pattern> patterns_;
    std::string held_;
    bool stopped_ = false;
};

}  // namespace cadans::text
