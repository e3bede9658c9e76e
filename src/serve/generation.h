// One request from admission to its last byte: events in, frames out.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "metrics/metrics.h"
#include "metrics/request_record.h"
#include "serve/admission.h"
#include "serve/choice.h"
#include "serve/dialects/answer_writer.h"
#include "serve/flights.h"
#include "serve/http/http_message.h"
#include "serve/models/model_keeper.h"
#include "serve/record/archive.h"
#include "serve/record/live_board.h"
#include "serve/record/span_exporter.h"

namespace cadans::serve {

/// What a generation reports to when it has ended. All outlive it.
struct Ledger {
    metrics::Metrics& metrics;
    Archive& archive;
    LiveBoard& board;
    SpanExporter& spans;
};

/// The connection drives it:
///
///     start → { write_ready → send → flushed }* → complete → write_end → send
///
/// or, for an answer that does not stream: start → complete → reply. Thread rule: one thread, the one that calls
/// Flights::take(); on_change runs there too.
class Generation final : public EventListener, public ModelWaiter {
  public:
    Generation(std::string id, std::string client_request_id, Admitted admitted, metrics::RequestRecord record);
    ~Generation() override;

    /// Whoever asked is part of that trace.
    void part_of(std::optional<metrics::TraceParent> parent, std::string state) {
        trace_parent_ = std::move(parent);
        trace_state_ = std::move(state);
    }

    const std::string& id() const noexcept { return id_; }
    bool streams() const noexcept { return request_.stream; }
    const char* stream_type() const noexcept { return writer_->stream_type(); }

    /// Hands the sequences to the engine, now or when their model is in memory. Errors, where it is known at once that
    /// nothing can run: as Inbox::submit(), and no_memory for the model.
    Status start(Flights& flights, runtime::Inbox& inbox, ModelKeeper& keeper, Ledger ledger);

    std::function<void()> on_change;  ///< there may be something to write, or all is over

    /// Appends frames that carry text, or progress; nothing when there is none.
    void write_ready(std::string& out);

    /// What write_ready() appended went to the kernel. `waited`: the client did not take it at once.
    void flushed(Nanos begin, Nanos end, bool waited);

    /// What is foretold when it comes in: for the header, and for the client until the engine says better. Before
    /// start().
    void foresee(const Outlook& outlook);
    void add_fields(HttpReply& reply) const;

    bool complete() const noexcept;    ///< nothing more to write but the end
    void write_end(std::string& out);  ///< counts the request; once
    void write_idle(std::string& out) { writer_->idle(out); }
    HttpReply reply();  ///< instead of write_end(), for an answer that does not stream

    void fail(Error error);  ///< ends it as an error that the client sees

    /// The client is gone: leave, and when landed, abandon. The step in flight is the request's, so its record waits
    /// for that.
    void leave();
    bool landed() const;  ///< the engine has let go of all that it has of this
    void abandon();

    /// The client took no more for so long, and then the connection ended.
    void not_taken(Nanos begin, Nanos end);

    void on(const Event& event) override;
    void settled() override;
    void load_begins(Nanos now) override;
    void load_goes_on() override;
    void let_in(Stay stay, Nanos now) override;
    void refused(const Error& error, Nanos now) override;

  private:
    Status submit(Stay stay);
    Status submit_more();
    void submit_next();
    void forget_rest();
    void let_go();
    void load_is_over(Nanos now);
    bool stop_waiting();
    Choice* find(SeqId seq) noexcept;
    void foretell(Progress& progress) const;
    void write_progress(std::string& out);
    void note_text(Nanos now);
    size_t open_finishes() const noexcept;
    LiveFacts live_facts() const;
    Closing close(metrics::Outcome outcome);
    void remember(Closing& closing, metrics::Outcome outcome);
    std::string send_spans(const metrics::Figures& figures, metrics::Outcome outcome);
    uint32_t stalls() const;
    std::optional<uint32_t> remembered_tokens() const;
    std::optional<CacheMiss> cache_miss() const;
    metrics::Outcome outcome() const noexcept;

    std::string id_;
    std::string client_request_id_;
    GenerationRequest request_;
    std::vector<AdmittedPrompt> prompts_;
    std::vector<SequenceRequest> sequences_;  // empty once all are handed in
    size_t submitted_ = 0;
    runtime::Place place_;
    uint64_t seed_;
    std::optional<metrics::TraceParent> trace_parent_;
    std::string trace_state_;
    metrics::RequestRecord record_;
    std::unique_ptr<AnswerWriter> writer_;
    std::vector<Choice> choices_;
    std::optional<Error> failure_;

    Flights* boarding_ = nullptr;  // set by start(): where it goes when its model is there
    Flights* flights_ = nullptr;   // where it is
    runtime::Inbox* inbox_ = nullptr;
    ModelKeeper* keeper_ = nullptr;    // while it waits for its model
    std::optional<Nanos> load_begin_;  // of the load under way
    std::optional<Ledger> ledger_;

    std::optional<Forecast> foreseen_;

    std::optional<Nanos> text_begin_;  // since when tokens are being made into text
    std::optional<Nanos> prefill_begin_;
    bool progress_due_ = true;
    Nanos progress_at_ = 0;
    bool left_ = false;  // by its client
    bool over_ = false;  // counted
};

}  // namespace cadans::serve
