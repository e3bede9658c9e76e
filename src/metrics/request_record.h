// The raw events of one request, the ground of every number that is ever shown about it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "flow/event.h"
#include "flow/phase.h"

namespace cadans::metrics {

struct Interval {
    Nanos begin = 0, end = 0;
};

/// A step that ran while the request was inside, with or without rows of it.
struct StepPart {
    Nanos begin = 0, end = 0;
    std::array<uint32_t, kPhases> rows{};  ///< of everybody
    std::array<uint32_t, kPhases> mine{};  ///< of this request, all its sequences together
    Nanos mask = 0;                        ///< of its time: waiting for masks of grammars
    uint32_t recomputed = 0;               ///< of `mine`: computed before, lost to a preemption
    uint32_t rejected = 0;                 ///< of `mine`: drafts not accepted
    Nanos drafting = 0;                    ///< of its time: a draft model's part
    uint32_t drafting_rows = 0;            ///< that the draft model computed, for everybody,
    uint32_t my_drafting_rows = 0;         ///< for this request,
    uint32_t my_wasted_rows = 0;           ///< and of these for guesses that were not accepted
};

/// How a request ended, as counted in cadans_requests_total{outcome=...}.
enum class Outcome : uint8_t { stop, length, cancelled, error, refused };
inline constexpr uint32_t kOutcomes = 5;
inline constexpr std::array<const char*, kOutcomes> kOutcomeNames = {"stop", "length", "cancelled", "error", "refused"};
constexpr Outcome outcome_of(FinishReason reason) noexcept {
    return reason == FinishReason::stuck ? Outcome::error : static_cast<Outcome>(reason);
}

/// All times are steady-clock nanoseconds given by the caller; phase-times in docs/metrics.md. A request
/// may have several sequences (choices, or a list of prompts). The http side calls the verbs of its part in
/// the order of life; the engine side is on(), for every event of the fanout from `queued` on.
///
/// Thread rule: one thread (the one that takes from the fanout, or its strand). Cost: grows by one
/// StepPart a step and one number a token.
class RequestRecord {
  public:
    explicit RequestRecord(RequestId request, Nanos accepted) : request_(request), accepted_(accepted) {}

    // The http side.

    void parsed(Nanos now) { parsed_ = now; }

    /// All prompts have become ids.
    void tokenized(Nanos now) { tokenized_ = now; }

    /// One sequence goes to the inbox. `counts_prompt`: false for the second and later answers to the same
    /// prompt, whose tokens the client sent only once.
    void queued(SeqId seq, uint32_t prompt_tokens, bool counts_prompt, Nanos now);

    void waited_for_load(Interval span) { loads_.push_back(span); }
    void waited_for_restore(Interval span) { restores_.push_back(span); }
    void waited_for_transfer(Interval span) { transfers_.push_back(span); }
    void waited_for_client(Interval span) { slow_.push_back(span); }
    void made_text(Interval span) { texts_.push_back(span); }
    void made_mask(Interval span) { masks_.push_back(span); }

    /// The door has ended this stream itself (a stop string): tokens that come after are not counted. Call it
    /// right after on() of the token that completed the string.
    void closed(SeqId seq);

    /// Bytes holding the text of `tokens` more tokens of that sequence went to the kernel. A write that
    /// carries no text (headers, comments, progress) is no flush. An answer that does not stream has none.
    void flushed(SeqId seq, uint32_t tokens, Nanos now);

    /// The end: when the last text was handed over, before the final frame is built. Once.
    void done(Outcome outcome, Nanos now);

    // The engine side.

    /// Any event; those that do not concern this request are ignored.
    void on(const Event& event);

    // What the formulas read.

    /// What is known of one of its sequences.
    struct Stream {
        SeqId seq{};
        uint32_t prompt_tokens = 0;
        bool counts_prompt = true;
        uint32_t cached = 0;    ///< prompt tokens from cached pages
        uint32_t computed = 0;  ///< prompt tokens computed, each once
        uint32_t output_tokens = 0;
        uint32_t tokens_after_first_flush = 0;
        uint32_t step_drafts = 0;  ///< of its last step: drafts that were accepted,
        uint32_t step_tokens = 0;  ///< and tokens told so far
        std::optional<Nanos> prefill_end;
        std::optional<Nanos> first_token, last_token;
        std::optional<Nanos> first_flush, last_flush;
        bool preempted = false;
        bool closed = false;    ///< by the door
        bool finished = false;  ///< by the engine
    };

    RequestId request() const noexcept { return request_; }
    Nanos accepted() const noexcept { return accepted_; }
    std::optional<Nanos> parsed() const noexcept { return parsed_; }
    std::optional<Nanos> tokenized() const noexcept { return tokenized_; }
    std::optional<Nanos> queued() const noexcept { return queued_; }
    std::optional<Nanos> first_scheduled() const noexcept { return first_scheduled_; }
    std::optional<Nanos> done() const noexcept { return done_; }
    Outcome outcome() const noexcept { return outcome_; }

    const std::vector<Stream>& streams() const noexcept { return streams_; }
    const std::vector<StepPart>& steps() const noexcept { return steps_; }
    const std::vector<Interval>& loads() const noexcept { return loads_; }
    const std::vector<Interval>& restores() const noexcept { return restores_; }
    const std::vector<Interval>& transfers() const noexcept { return transfers_; }
    const std::vector<Interval>& preemptions() const noexcept { return preemptions_; }  ///< of all its streams
    const std::vector<Interval>& slow() const noexcept { return slow_; }
    const std::vector<Interval>& texts() const noexcept { return texts_; }
    const std::vector<Interval>& masks() const noexcept { return masks_; }
    const std::vector<Nanos>& flush_gaps() const noexcept { return flush_gaps_; }  ///< between flushes of one stream
    const std::vector<Nanos>& token_gaps() const noexcept { return token_gaps_; }  ///< between accepted tokens
    uint32_t preemption_count() const noexcept { return preemption_count_; }
    uint32_t recomputed() const noexcept { return recomputed_; }
    uint32_t drafted() const noexcept { return drafted_; }
    uint32_t rejected() const noexcept { return rejected_; }  ///< or accepted behind the end of the text
    uint32_t modelled() const noexcept { return modelled_; }  ///< of drafted(): by a draft model
    uint32_t modelled_rejected() const noexcept { return modelled_rejected_; }
    Nanos drafting() const noexcept { return drafting_; }  ///< its part of the draft model's time, by rows
    /// Rows that were drawn from, by why they had no (more) drafts behind them.
    const std::array<uint32_t, kDraftHolds>& draft_holds() const noexcept { return draft_holds_; }

  private:
    Stream* find(SeqId seq);
    void on_step(const Event& event);
    void on_share(Stream& stream, const Event& event);
    void on_token(Stream& stream, Nanos time);
    void note_preemption(Nanos time);

    RequestId request_;
    Nanos accepted_;
    std::optional<Nanos> parsed_, tokenized_, queued_, first_scheduled_, done_;
    Outcome outcome_ = Outcome::stop;
    std::vector<Stream> streams_;
    std::vector<StepPart> steps_;
    StepId last_step_{};
    std::optional<Nanos> preempted_since_;  ///< since when all its live streams have been
    std::vector<Interval> loads_, restores_, transfers_, preemptions_, slow_, texts_, masks_;
    std::vector<Nanos> flush_gaps_, token_gaps_;
    uint32_t preemption_count_ = 0;
    uint32_t recomputed_ = 0;
    uint32_t drafted_ = 0;
    uint32_t rejected_ = 0;
    uint32_t modelled_ = 0, modelled_rejected_ = 0;
    Nanos drafting_ = 0;
    std::array<uint32_t, kDraftHolds> draft_holds_{};
};

}  // namespace cadans::metrics
