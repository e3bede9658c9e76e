#include "apps/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "apps/stderr_text.h"
#include "base/clock.h"

namespace cadans::apps {
namespace {

constexpr uint32_t kCells = 24;
constexpr Nanos kRedraw = 50 * kNanosPerMilli;

}  // namespace

Progress::Progress(std::string what) : what_(std::move(what)), terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::show(uint64_t done, uint64_t total, const std::string& note) {
    const double share = total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
    if (!terminal_) {
        const auto tenth = static_cast<uint32_t>(share * 10);
        if (tenth <= last_tenth_ && done != total) return;
        last_tenth_ = tenth;
        if (done == total || tenth % 5 == 0) to_stderr("{} {:.0f} % {}\n", what_, share * 100, note);
        return;
    }
    const Nanos now = steady_now();
    if (drawn_ && done != total && now - last_ < kRedraw) return;
    last_ = now;
    drawn_ = true;
    const auto full = static_cast<uint32_t>(share * kCells);
    std::string bar;
    for (uint32_t i = 0; i < kCells; i++) bar += i < full ? "━" : "·";
    to_stderr("\r\033[K{} {} {:3.0f} % {}", what_, bar, share * 100, note);
    std::fflush(stderr);
}

void Progress::clear() {
    if (drawn_) to_stderr("\r\033[K");
    drawn_ = false;
    std::fflush(stderr);
}

}  // namespace cadans::apps
