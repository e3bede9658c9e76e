// A running server's decisions on paper, so that the same scheduler can take them again.
#pragma once

#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"
#include "runtime/pseudonyms.h"
#include "runtime/witness.h"
#include "sched/admission.h"

namespace cadans::runtime {

/// Writes JSON lines (docs/tape.md): what each turn of the loop was given and the digest of the plan that came out.
/// No text and no token: lengths, and pseudonyms that tell which prompts began alike. Settings that only change which
/// token is drawn are left out.
///
/// Ends by itself when the file is `most_bytes` long or the disk is too slow; the server goes on. Thread rule: the
/// loop's thread; a thread of its own writes to disk. Cost: some 50 ns a prompt token.
class Tape final : public Witness {
  public:
    /// Of the format. 2: with guesses; 3: with those of a draft model.
    static constexpr uint32_t kVersion = 3;

    struct Options {
        std::string policy;                          ///< its name
        Speculation usual = Speculation::automatic;  ///< of requests that ask for nothing
        uint64_t most_bytes = uint64_t{1} << 30;
        std::array<uint64_t, 2> key{};  ///< of the pseudonyms; to be drawn anew for each tape
        /// Told once when it ends by itself: "full", "slow" or "failed". On the loop's or the writer's thread.
        std::function<void(std::string_view why)> on_end = {};
    };

    /// An existing file is replaced; only its owner may read it. Errors: io, denied.
    static Result<std::unique_ptr<Tape>> open(const std::string& path, const sched::House& house, Options options);

    ~Tape() override;  ///< after the loop's last turn: writes what is left and the closing line

    void heard(Nanos now, const StepResult* result, std::span<const Command> commands) override;
    void planned(const StepPlan* plan, std::span<const Event> events) override;

    /// False once it has ended by itself. Thread-safe.
    bool running() const noexcept { return running_.load(std::memory_order_relaxed); }

  private:
    Tape(std::FILE* file, Options options);

    /// A sequence inside: how far its pseudonyms have come, and which tokens end it.
    struct Inside {
        uint64_t history = Pseudonyms::kStart;
        std::vector<TokenId> end_tokens;
    };

    void write_result(const StepResult& result);
    void write_offers(std::span<const DraftOffer> offers);
    void write_admission(const SequenceRequest& request, Nanos since);
    void hand_over(Nanos now);
    void finish(std::string_view why);
    void write_out();
    void tell(std::string_view why);

    static constexpr size_t kHandOver = 64 << 10;
    static constexpr size_t kMostUnwritten = 32 << 20;  ///< a disk that far behind is too slow
    enum State : uint32_t { idle, handed, closing };

    std::FILE* file_;
    Options options_;
    Pseudonyms pseudonyms_;
    std::map<SeqId, Inside> inside_;
    std::string filling_;  ///< the loop's thread
    std::string writing_;  ///< the writer's while state_ is handed
    uint64_t bytes_ = 0;
    Nanos handed_at_ = 0;
    Nanos now_ = 0;
    std::atomic<bool> running_{true};
    std::atomic<bool> failed_{false};  ///< the disk said no
    std::atomic<bool> told_{false};
    std::atomic<uint32_t> state_{idle};
    std::jthread writer_;  ///< last: it uses the others
};

}  // namespace cadans::runtime
