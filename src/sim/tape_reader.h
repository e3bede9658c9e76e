// A server's record, read back turn by turn and checked so that no line of it can break a check of ours.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "flow/step.h"
#include "runtime/inbox.h"
#include "sched/admission.h"
#include "sim/trace_lines.h"
#include "sim/workload.h"

namespace cadans::sim {

/// One turn of the loop as it was.
struct TapeTurn {
    Nanos at = 0;
    bool has_result = false;
    StepResult result;
    std::vector<runtime::Command> commands;
    std::optional<uint64_t> digest;  ///< of the plan that came out; none: there was none

    /// What was guessed for it.
    struct Offer {
        SeqId seq{};
        uint32_t match = 0;
        std::vector<TokenId> tokens;
    };
    std::vector<Offer> offers;
};

/// Thread rule: one thread. Memory: the file, and one turn.
class TapeReader {
  public:
    /// Errors: those of reading; bad_input where the first line is not that of a tape of this version.
    static Result<TapeReader> open(const std::string& path);

    const sched::House& house() const noexcept { return house_; }
    const std::string& policy() const noexcept { return policy_; }

    /// The next turn, valid until the next call; null at the end. A last line that was cut off ends the tape too.
    /// Errors: bad_input with the line.
    Result<const TapeTurn*> next();

    /// Why it ended: "closed", "full", "slow", "failed", or "cut" where the server had no time to say.
    const std::string& end() const noexcept { return end_; }

    /// The first line of every tape begins with this.
    static constexpr std::string_view kMark = "{\"cadans\":\"tape\"";

  private:
    TapeReader(std::unique_ptr<std::string> text, Lines lines) : text_(std::move(text)), lines_(std::move(lines)) {}
    Error wrong(std::string_view what) const;

    std::unique_ptr<std::string> text_;  ///< lines_ looks into it
    Lines lines_;
    sched::House house_;
    std::string policy_, end_ = "cut";
    std::set<SeqId> admitted_;
    TapeTurn turn_;
};

/// Whether that file is a tape, by its first line.
bool is_tape(const std::string& path);

/// The requests of a tape: when each came, and how long its answer turned out to be. Those that were cancelled are
/// taken to have wanted what they got. Errors: as TapeReader's.
Result<Workload> workload_of_tape(const std::string& path);

}  // namespace cadans::sim
