// Who is being served now: each request's phase, what it has waited for so far, and whose steps it waited for.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "flow/event.h"
#include "flow/forecast.h"
#include "flow/model_work.h"
#include "flow/request.h"
#include "metrics/running_tally.h"
#include "serve/record/seconds.h"

namespace cadans::serve {

/// What does not change while a request is served.
struct LiveFacts {
    std::string id, model, client;
    const char* route = "";
    Priority priority = Priority::normal;
    bool streams = false;
    Nanos accepted = 0;
    uint32_t prompt_tokens = 0;  ///< of all its prompts
    uint64_t max_output_tokens = 0;
    ModelWork work;
    metrics::RowCost cost = {};                      ///< of its model's steps
    std::optional<Nanos> foretold_first_token = {};  ///< a point in time, as its client was told when it came in
};

/// Somebody whose rows were computed while another waited.
struct Holder {
    std::string id;
    Nanos prefill_ns = 0, decode_ns = 0;

    Nanos total() const noexcept { return prefill_ns + decode_ns; }
    const char* phase() const noexcept { return prefill_ns >= decode_ns ? "prefill" : "decode"; }
};

struct LiveRequest {
    LiveFacts facts;
    metrics::RunningTally tally;
    Nanos phase_since = 0;
    uint32_t cached_tokens = 0, computed_tokens = 0, output_tokens = 0;
    std::optional<Nanos> first_step, prefill_end, first_flush, last_flush, last_gap, max_gap;
    uint64_t tokens_flushed_after_first = 0;
    std::vector<Holder> holders;
    bool cold = false;  ///< it waited for its model to load
    std::optional<Nanos> ended;
    const char* outcome = nullptr;

    /// load, queue, prefill, decode, preempted, writing
    const char* phase() const noexcept;

    /// Those that it waited for most, at most `most`.
    std::vector<Holder> worst_holders(size_t most) const;

    explicit LiveRequest(LiveFacts given) : facts(std::move(given)), tally(facts.accepted) {}

    struct Stream {
        SeqId seq{};
        uint32_t prompt_tokens = 0, position = 0, cached = 0, output = 0;
        bool preempted = false, finished = false;

        /// Tokens that the engine has computed: the newest word is known before it is.
        uint32_t computed() const noexcept { return position + output - (output > 0); }
    };
    std::vector<Stream> streams;
};

/// A step as it is shown.
struct LiveStep {
    uint64_t number = 0;
    Nanos begin = 0, end = 0;
    std::array<uint32_t, kPhases> rows{};
    struct Share {
        std::string id;
        Phase phase = Phase::prefill;
        uint32_t rows = 0;
    };
    std::vector<Share> shares = {};
};

/// Hears every event of the engine and is told what the doors do. Thread rule: one thread, that of Flights. Cost: a few
/// microseconds a step for each request inside.
class LiveBoard {
  public:
    static constexpr Nanos kShownAfterEnd = 3 * kNanosPerSecond;
    static constexpr size_t kStepsKept = 256;

    /// A request stands in the queue, for its model or for the engine.
    void add(RequestId request, LiveFacts facts, const std::vector<std::pair<SeqId, uint32_t>>& prompts, Nanos now);
    /// Its model is being loaded, and is there.
    void loading(RequestId request, Nanos now);
    void loaded(RequestId request, Nanos now);
    void on(const Event& event);
    void settled();  ///< all events of a take have been given
    void foretold(const std::vector<Forecast>& line);
    void flushed(RequestId request, uint32_t tokens, Nanos now, Nanos stall_limit);
    void done(RequestId request, const char* outcome, Nanos now);

    /// Null when it is unknown or no longer shown.
    const LiveRequest* find(RequestId request) const;

    /// In order of admission, those included that ended a moment ago; forgets older ones.
    const std::list<LiveRequest>& requests(Nanos now);

    const std::deque<LiveStep>& steps() const noexcept { return steps_; }  ///< the newest, oldest first
    const Seconds& seconds() const noexcept { return seconds_; }
    const std::vector<Forecast>& line() const noexcept { return line_; }
    Nanos last_step_end() const noexcept { return last_step_end_; }

  private:
    void close_step();
    void enter(RequestId request, metrics::RunningTally::State state, Nanos now);
    void take_turns();
    void forget_ended(Nanos now);
    void tally_step(LiveRequest& request);
    LiveRequest* of(SeqId seq, LiveRequest::Stream** stream);

    struct OpenShare {
        LiveRequest* request;
        const LiveRequest::Stream* stream;
        Phase phase;
        uint32_t rows;
    };

    std::list<LiveRequest> requests_;  // elements stay where they are
    std::unordered_map<RequestId, LiveRequest*> by_request_;
    std::unordered_map<SeqId, LiveRequest*> by_seq_;
    std::optional<Event> step_;  // whose shares are coming
    std::vector<OpenShare> shares_;
    struct Turn {
        LiveRequest* request;
        EventKind kind;
        Nanos time;
    };
    std::vector<Turn> turns_;  ///< preempted, resumed, finished: taken when the step is closed
    uint64_t written_ = 0;     ///< tokens of that step
    std::deque<LiveStep> steps_;
    Seconds seconds_;
    std::vector<Forecast> line_;
    Nanos last_step_end_ = 0;
};

}  // namespace cadans::serve
