// Finished requests on disk, in one SQLite file with a limit of size and of age.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "history/finished_request.h"
#include "history/kept_rows.h"

namespace cadans::history {

struct StoreLimits {
    uint64_t most_bytes = uint64_t{256} << 20;  ///< of the file; the oldest records go first
    uint32_t most_days = 30;                    ///< older records go
};

/// What a row was added to survives the end of the process, whatever ended it (the machine's own crash may take the
/// last few). Several processes may share one file. Thread rule: one thread at a time. Cost: a row some 30 µs and
/// 2 KB; no call waits for the disk to be done.
class Store {
  public:
    /// Makes the file and its folder where there are none; only its owner may read it. A file that is damaged, or no
    /// database, is set aside as PATH.damaged-UNIX_MS and a new one begun: note() says so.
    ///
    /// Errors: io (no room, not permitted, busy), unsupported (written by a newer version: it is left as it is).
    static Result<std::unique_ptr<Store>> open(const std::string& path, StoreLimits limits, int64_t now_ms);
    ~Store();

    /// What open() had to do to the file, for the log; empty: nothing.
    const std::string& note() const noexcept { return note_; }
    const std::string& path() const noexcept { return path_; }

    /// Also lets go of what is over the limits, now and then. A row of the same id is replaced. Errors: io.
    Status add(const FinishedRequest& request);

    /// The record of one request. Errors: not_found, io.
    Result<std::string> find(const std::string& id);

    /// The record accepted last. Errors: not_found (there is none), io.
    Result<std::string> newest();

    /// Figures without the record, oldest first, of the newest `most` in the span; valid until the next call of any.
    /// The first question reads them from the file, later ones find them in memory. Errors: io.
    Result<std::span<const FinishedRequest>> rows(const Span& span, uint64_t most);

    /// The newest `most` of all, newest first. Reads no others. Errors: io.
    Result<std::vector<FinishedRequest>> newest_rows(uint64_t most);

    /// When the oldest record was accepted; nothing where there is none. Errors: io.
    Result<std::optional<int64_t>> kept_since();

    /// Lets go of what is over the limits. Errors: io.
    Status prune(int64_t now_ms);

  private:
    struct Database;
    Store(std::string path, StoreLimits limits, std::unique_ptr<Database> database);

    std::string path_, note_;
    StoreLimits limits_;
    std::unique_ptr<Database> database_;
    KeptRows kept_;
    int64_t version_ = 0;  ///< of the file when they were read
    uint32_t adds_ = 0;
};

}  // namespace cadans::history
