// The figures of what the file holds, in memory while somebody asks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "history/finished_request.h"

namespace cadans::history {

/// Which rows: accepted in [from_ms, to_ms), of `model` (empty: any).
struct Span {
    int64_t from_ms = 0, to_ms = INT64_MAX;
    std::string model = {};
};

/// Rows without their records, oldest first. Who reads ten thousand rows from the file takes some 40 ms of a core that
/// others compute on; who looks through them here takes a few. Forgotten when a thousand rows came since anybody asked.
/// Thread rule: one thread at a time.
class KeptRows {
  public:
    static constexpr uint32_t kForgottenAfter = 1000;

    bool loaded() const noexcept { return loaded_; }
    void load(std::vector<FinishedRequest> oldest_first);
    void forget();

    /// Also of the file now; one of the same id is replaced.
    void add(const FinishedRequest& request);

    /// The newest `most` of the span, valid until the next call of any.
    std::span<const FinishedRequest> of(const Span& span, uint64_t most);

  private:
    bool loaded_ = false;
    std::vector<FinishedRequest> rows_, chosen_;
    uint32_t adds_ = 0;  ///< since somebody asked
};

}  // namespace cadans::history
