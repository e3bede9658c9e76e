// Finished requests: the newest in memory for those who ask at once, all of them on disk for those who ask later.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "history/store.h"
#include "serve/options.h"
#include "serve/record/request_log.h"

namespace cadans::serve {

/// Records go to disk on a thread of their own, which does one thing after another: no reply waits for a disk, and who
/// asks for a record that is on its way there gets it. A disk that is far behind loses records, which is counted.
class Archive {
  public:
    /// Has something done later on the history's thread, after all that was posted before.
    using Post = std::function<void(std::function<void()>)>;

    Archive(HistoryOptions options, size_t most_remembered, Post post);

    // On the thread that serves.

    /// Opens the file, or says in the log why there is none.
    void begin();

    /// `on_disk` is the record as it may be kept: without a word of the prompt, unless prompts are kept; then
    /// `prompt`, called on the history's thread, is its text.
    void remember(history::FinishedRequest request, std::string on_disk, std::function<std::string()> prompt);

    const RequestLog& log() const noexcept { return log_; }

    // On the history's thread.

    /// Null while nothing can be kept on disk.
    history::Store* store() noexcept { return store_.get(); }

    // On any.

    const HistoryOptions& options() const noexcept { return options_; }
    bool on_disk() const noexcept { return on_disk_.load(std::memory_order_relaxed); }
    uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }  ///< records that no disk took

  private:
    void open();
    void write(const history::FinishedRequest& request);

    HistoryOptions options_;
    RequestLog log_;
    Post post_;
    std::unique_ptr<history::Store> store_;
    int64_t opened_ms_ = 0;  ///< when that was last tried
    std::atomic<bool> on_disk_{false};
    std::atomic<uint64_t> waiting_{0}, lost_{0};
};

}  // namespace cadans::serve
