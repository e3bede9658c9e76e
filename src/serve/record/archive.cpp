#include "serve/record/archive.h"

#include <spdlog/spdlog.h>

#include "base/clock.h"
#include "serve/dialects/json_writer.h"

namespace cadans::serve {

namespace {

constexpr uint64_t kMostWaiting = 4096;       ///< records on their way to a slow disk
constexpr int64_t kTryAgainAfterMs = 60'000;  ///< a file that could not be opened or written

}  // namespace

Archive::Archive(HistoryOptions options, size_t most_remembered, Post post)
    : options_(std::move(options)), log_(most_remembered), post_(std::move(post)) {}

void Archive::begin() {
    if (!options_.path.empty()) post_([this] { open(); });
}

void Archive::open() {
    opened_ms_ = unix_millis();
    auto opened = history::Store::open(options_.path, {options_.most_bytes, options_.most_days}, opened_ms_);
    if (opened) {
        store_ = *std::move(opened);
        if (!store_->note().empty()) spdlog::warn("history: {}", store_->note());
    } else {
        spdlog::warn("history: {}; finished requests are kept in memory only", opened.error().message);
    }
    on_disk_ = store_ != nullptr;
}

void Archive::remember(history::FinishedRequest request, std::string on_disk, std::function<std::string()> prompt) {
    if (options_.path.empty()) return log_.remember(std::move(request));
    if (waiting_.load() >= kMostWaiting) {
        lost_.fetch_add(1);
        return log_.remember(std::move(request));
    }
    waiting_.fetch_add(1);
    history::FinishedRequest kept = request;
    kept.record = std::move(on_disk);
    log_.remember(std::move(request));
    post_([this, kept = std::move(kept), prompt = std::move(prompt)]() mutable {
        waiting_.fetch_sub(1);
        if (prompt) {
            kept.record.pop_back();  // the closing brace
            kept.record += ",\"prompt\":\"";
            append_escaped(kept.record, prompt());
            kept.record += "\"}";
        }
        write(kept);
    });
}

void Archive::write(const history::FinishedRequest& request) {
    if (store_ == nullptr && unix_millis() - opened_ms_ >= kTryAgainAfterMs) open();
    if (store_ != nullptr) {
        const Status added = store_->add(request);
        if (added) return;
        spdlog::warn("history: {}", added.error().message);
        store_.reset();  // a damaged file is set aside when it is opened again
        on_disk_ = false;
    }
    lost_.fetch_add(1);
}

}  // namespace cadans::serve
