#include "serve/generation.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "serve/doors.h"

namespace cadans::serve {

namespace {

constexpr Nanos kProgressEvery = kNanosPerSecond;

Error ended_by_engine(FinishReason reason) {
    switch (reason) {
        case FinishReason::cancelled:
            return {ErrorCode::unavailable, "the server is stopping: the answer is not complete", {}};
        case FinishReason::refused:
            return {ErrorCode::too_long, "the request could never fit the memory for keys and values", {}};
        case FinishReason::stuck:
            return {ErrorCode::unsupported,
                    "the form that was asked for has too many ways to go on from here, or needs too much memory: the "
                    "answer is not complete. Ask for a simpler one, with fewer alternatives that begin alike and "
                    "smaller bounds",
                    {}};
        default:
            return {ErrorCode::internal,
                    "the model gave scores that are no numbers, or memory ran out: the answer is not complete",
                    {}};
    }
}

}  // namespace

Generation::Generation(std::string id, std::string client_request_id, Admitted admitted, metrics::RequestRecord record)
    : id_(std::move(id)),
      client_request_id_(std::move(client_request_id)),
      request_(std::move(admitted.request)),
      prompts_(std::move(admitted.prompts)),
      sequences_(std::move(admitted.sequences)),
      place_(std::move(admitted.place)),
      seed_(admitted.seed),
      record_(std::move(record)) {
    const text::Vocabulary& vocabulary = request_.model->tokenizer->vocabulary();
    uint32_t prompt_tokens = 0;
    for (const AdmittedPrompt& prompt : prompts_) prompt_tokens += static_cast<uint32_t>(prompt.ids.size());
    writer_ = make_answer_writer({.form = request_.form,
                                  .id = id_,
                                  .model = request_.model->name,
                                  .created = unix_seconds(),
                                  .include_usage = request_.include_usage,
                                  .logprobs = request_.logprobs,
                                  .top_logprobs = request_.sampling.top_logprobs,
                                  .return_token_ids = request_.return_token_ids,
                                  .prompt_tokens = prompt_tokens,
                                  .echoed = request_.echoed,
                                  .base64 = request_.base64,
                                  .vocabulary = &vocabulary});
    TokenStreamOptions options;
    options.stop = request_.stop;
    const bool conversation = std::holds_alternative<Conversation>(request_.prompt);
    if (request_.split_reasoning && conversation) options.reasoning = request_.model->reasoning;
    options.starts_inside = admitted.reasoning_open;
    options.after_thinking = admitted.after_thinking;
    options.calls = request_.tools.choice != ToolChoice::none;
    options.shows_control = !sequences_.empty() && sequences_.front().constraint != nullptr;
    choices_.reserve(sequences_.size());
    for (size_t i = 0; i < sequences_.size(); ++i)
        choices_.emplace_back(request_, prompts_[i / request_.choices], static_cast<uint32_t>(i), options,
                              sequences_[i].embedding);
}

Generation::~Generation() {
    stop_waiting();
    let_go();
}

Status Generation::start(Flights& flights, runtime::Inbox& inbox, ModelKeeper& keeper, Ledger ledger) {
    boarding_ = &flights;
    inbox_ = &inbox;
    keeper_ = &keeper;
    ledger_.emplace(ledger);
    const Nanos now = steady_now();
    LiveFacts facts = live_facts();
    std::vector<std::pair<SeqId, uint32_t>> prompts;
    for (size_t i = 0; i < sequences_.size(); ++i) {
        const SeqId seq = choices_[i].seq = sequences_[i].seq = inbox.new_seq();
        const auto prompt_tokens = static_cast<uint32_t>(sequences_[i].prompt.size());
        record_.queued(seq, prompt_tokens, i % request_.choices == 0, now);
        prompts.emplace_back(seq, prompt_tokens);
    }
    keeper.ask(*this, request_.model->model, request_.keep_alive);
    if (failure_) {
        record_.done(metrics::Outcome::refused, steady_now());
        over_ = true;
        return *failure_;
    }
    if (keeper_ != nullptr) foreseen_.reset();  // what was foretold knows of no load
    if (foreseen_) facts.foretold_first_token = foreseen_->first_token_at();
    ledger.board.add(record_.request(), std::move(facts), prompts, now);
    if (load_begin_) ledger.board.loading(record_.request(), now);
    return Ok{};
}

/// Hands in as many sequences as its place has room for.
Status Generation::submit(Stay stay) {
    flights_ = boarding_;
    std::vector<SeqId> seqs;
    for (const Choice& choice : choices_) seqs.push_back(choice.seq);
    flights_->add(*this, std::move(place_), std::move(stay), seqs);
    return submit_more();
}

/// After an error none goes on.
Status Generation::submit_more() {
    runtime::Place& place = *flights_->place_of(*this);
    for (; submitted_ < sequences_.size() && place.room() > 0; submitted_++) {
        Status sent = inbox_->submit(place, std::move(sequences_[submitted_]));
        if (sent) continue;
        let_go();
        return sent;
    }
    if (submitted_ == sequences_.size()) sequences_.clear();
    return Ok{};
}

/// One has ended: the next one that waits takes its part of the place.
void Generation::submit_next() {
    if (sequences_.empty() || failure_) return;
    flights_->place_of(*this)->ended_one();
    if (Status sent = submit_more(); !sent) failure_ = std::move(sent).error();
}

/// What was never handed in nobody will end.
void Generation::forget_rest() {
    for (size_t i = submitted_; i < sequences_.size(); ++i) flights_->forget(choices_[i].seq);
    sequences_.clear();
}

/// No more events are wanted.
void Generation::let_go() {
    if (flights_ == nullptr) return;
    forget_rest();
    std::exchange(flights_, nullptr)->leave(*this);
}

void Generation::load_begins(Nanos now) {
    load_begin_ = now;
    progress_due_ = true;
    ledger_->board.loading(record_.request(), now);
    if (on_change) on_change();
}

void Generation::load_goes_on() {
    progress_due_ = true;
    if (on_change && request_.stream) on_change();
}

void Generation::load_is_over(Nanos now) {
    if (!load_begin_) return;
    record_.waited_for_load({*load_begin_, now});
    ledger_->board.loaded(record_.request(), now);
    load_begin_.reset();
}

void Generation::let_in(Stay stay, Nanos now) {
    keeper_ = nullptr;
    load_is_over(now);
    if (Status sent = submit(std::move(stay)); !sent) return fail(std::move(sent).error());
    progress_due_ = true;
    if (on_change) on_change();
}

void Generation::refused(const Error& error, Nanos now) {
    keeper_ = nullptr;
    load_is_over(now);
    fail(error);
}

/// Returns whether it waited.
bool Generation::stop_waiting() {
    ModelKeeper* keeper = std::exchange(keeper_, nullptr);
    if (keeper != nullptr) keeper->withdraw(*this);
    return keeper != nullptr;
}

LiveFacts Generation::live_facts() const {
    LiveFacts facts{.id = id_,
                    .model = request_.model->name,
                    .client = request_.user,
                    .route = name(request_.form),
                    .priority = request_.priority,
                    .streams = request_.stream,
                    .accepted = record_.accepted(),
                    .work = request_.model->work};
    if (const auto cost = request_.model->step_cost()) facts.cost = metrics::RowCost::of(*cost);
    for (const SequenceRequest& sequence : sequences_) {
        facts.prompt_tokens += static_cast<uint32_t>(sequence.prompt.size());
        facts.max_output_tokens += sequence.max_new_tokens;
    }
    return facts;
}

Choice* Generation::find(SeqId seq) noexcept {
    for (Choice& choice : choices_)
        if (choice.seq == seq) return &choice;
    return nullptr;
}

void Generation::on(const Event& event) {
    if (over_) return;
    if (event.kind == EventKind::step_begin) {
        // One who waits hears of its place now and then, though no step names it.
        if (!prefill_begin_ && event.time - progress_at_ >= kProgressEvery) progress_due_ = true;
        return record_.on(event);
    }
    Choice* choice = find(event.seq);
    if (choice == nullptr) return;
    // What the engine drew after a stop string was found is nobody's.
    if (choice->reason() && event.kind != EventKind::finished) return;
    record_.on(event);
    switch (event.kind) {
        case EventKind::step_share:
            choice->read(event);
            if (!prefill_begin_) prefill_begin_ = event.begin;
            progress_due_ = true;
            break;
        case EventKind::token:
            if (!text_begin_) text_begin_ = steady_now();
            if (!choice->take(event)) break;
            record_.closed(choice->seq);
            inbox_->cancel(choice->seq);
            break;
        case EventKind::prompt_score:
            choice->score_prompt(event);
            break;
        case EventKind::finished:
            if (!choice->reason() && !choice->end(event.reason) && !failure_) failure_ = ended_by_engine(event.reason);
            submit_next();
            break;
        default:
            break;
    }
}

void Generation::settled() {
    if (!request_.stream) note_text(steady_now());
    if (on_change && (request_.stream || left_ || complete())) on_change();
}

void Generation::write_ready(std::string& out) {
    for (Choice& choice : choices_) {
        if (!choice.has_piece()) continue;
        writer_->text(out, choice.pending());
        choice.shown();
    }
    if (!out.empty()) return;
    // The last finish waits for write_end(): the figures ride in it.
    for (Choice& choice : choices_) {
        if (!choice.reason() || choice.finish_written || open_finishes() <= 1 || failure_) continue;
        writer_->finish(out, choice.pending(), *choice.reason(), nullptr);
        choice.finish_written = true;
    }
    if (out.empty() && request_.include_progress && progress_due_) write_progress(out);
}

// The kernel takes bytes that it has room for within the call. A client that wakes at once may run before the call is
// back: its begin, not its end, is when they were handed over.
void Generation::flushed(Nanos begin, Nanos end, bool waited) {
    const Nanos at = waited ? end : begin;
    for (Choice& choice : choices_) {
        if (!choice.in_flush()) continue;
        const uint32_t tokens = choice.flushed();
        record_.flushed(choice.seq, tokens, at);
        ledger_->board.flushed(record_.request(), tokens, at, ledger_->metrics.stall_limit());
    }
    note_text(begin);
    if (waited) record_.waited_for_client({begin, end});
}

void Generation::not_taken(Nanos begin, Nanos end) {
    note_text(begin);
    record_.waited_for_client({begin, end});
}

// Tokens were being made into text until now.
void Generation::note_text(Nanos now) {
    if (text_begin_ && !over_) record_.made_text({*text_begin_, now});
    text_begin_.reset();
}

size_t Generation::open_finishes() const noexcept {
    return static_cast<size_t>(
        std::count_if(choices_.begin(), choices_.end(), [](const Choice& choice) { return !choice.finish_written; }));
}

bool Generation::complete() const noexcept {
    if (failure_) return true;
    const bool ended =
        std::all_of(choices_.begin(), choices_.end(), [](const Choice& choice) { return choice.reason().has_value(); });
    if (!ended || !request_.stream) return ended;
    return open_finishes() == 1 && std::all_of(choices_.begin(), choices_.end(),
                                               [](const Choice& choice) { return !choice.pending().has_text(); });
}

metrics::Outcome Generation::outcome() const noexcept {
    if (failure_) return metrics::Outcome::error;
    if (request_.embedding) return metrics::Outcome::stop;  // nothing was cut
    for (const Choice& choice : choices_)
        if (choice.reason() == FinishReason::length) return metrics::Outcome::length;
    return metrics::Outcome::stop;
}

void Generation::write_end(std::string& out) {
    const Closing closing = close(outcome());
    if (failure_) {
        let_go();
        return writer_->error(out, *failure_);
    }
    for (Choice& choice : choices_) {
        if (choice.finish_written) continue;
        choice.finish_written = true;
        writer_->finish(out, choice.pending(), *choice.reason(), &closing);
    }
    writer_->end(out, closing);
}

HttpReply Generation::reply() {
    const Closing closing = close(outcome());
    if (failure_) {
        let_go();
        return error_reply(*failure_, writer_->dialect());
    }
    std::vector<ChoiceText> texts;
    std::vector<FinishReason> reasons;
    for (Choice& choice : choices_) {
        texts.push_back(choice.take_whole());
        reasons.push_back(*choice.reason());
    }
    HttpReply out;
    add_fields(out);
    out.body = writer_->whole(texts, reasons, closing);
    return out;
}

void Generation::fail(Error error) {
    if (!failure_) failure_ = std::move(error);
    if (on_change) on_change();
}

void Generation::leave() {
    left_ = true;
    if (stop_waiting()) load_is_over(steady_now());
    if (flights_ == nullptr) return;
    forget_rest();
    flights_->cancel(*this);
}

bool Generation::landed() const { return flights_ == nullptr || flights_->place_of(*this) == nullptr; }

void Generation::abandon() {
    let_go();
    if (!over_ && ledger_) close(metrics::Outcome::cancelled);
}

}  // namespace cadans::serve
