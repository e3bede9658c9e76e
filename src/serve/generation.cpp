#include "serve/generation.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace cadans::serve {

namespace {

constexpr size_t kMissTokensShown = 8;
constexpr size_t kHoldersShown = 4;
constexpr Nanos kProgressEvery = kNanosPerSecond;

Error ended_by_engine(FinishReason reason) {
    switch (reason) {
        case FinishReason::cancelled:
            return {ErrorCode::unavailable, "the server is stopping: the answer is not complete", {}};
        case FinishReason::refused:
            return {ErrorCode::too_long, "the request could never fit the memory for keys and values", {}};
        default:
            return {ErrorCode::internal, "the model gave scores that are no numbers: the answer is not complete", {}};
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
    writer_ = make_answer_writer({.form = request_.form,
                                  .id = id_,
                                  .model = request_.model->name,
                                  .created = unix_seconds(),
                                  .include_usage = request_.include_usage,
                                  .logprobs = request_.logprobs,
                                  .top_logprobs = request_.sampling.top_logprobs,
                                  .return_token_ids = request_.return_token_ids,
                                  .vocabulary = &vocabulary});
    TokenStreamOptions options;
    options.stop = request_.stop;
    const bool conversation = std::holds_alternative<Conversation>(request_.prompt);
    if (request_.split_reasoning && conversation) options.reasoning = request_.model->reasoning;
    options.starts_inside = admitted.reasoning_open;
    choices_.reserve(sequences_.size());
    for (size_t i = 0; i < sequences_.size(); ++i) {
        Choice choice{.seq = {},
                      .prompt = &prompts_[i / request_.choices],
                      .stream = {vocabulary, options},
                      .pending = {},
                      .reason = {}};
        choice.pending.index = static_cast<uint32_t>(i);
        if (request_.return_token_ids) choice.pending.prompt_ids = choice.prompt->ids;
        if (request_.echo) echo_prompt(choice);
        choices_.push_back(std::move(choice));
    }
}

Generation::~Generation() {
    stop_waiting();
    if (flights_ != nullptr) flights_->leave(*this);
}

void Generation::echo_prompt(Choice& choice) {
    choice.pending.content = choice.prompt->echo;
    choice.base_characters = count_characters(choice.prompt->echo);
    if (!request_.logprobs) return;
    ScoredToken first;
    first.score.token = choice.prompt->ids.front();
    first.scored = false;
    choice.pending.scored.push_back(first);
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
    ledger.board.add(record_.request(), std::move(facts), prompts, now);
    if (load_begin_) ledger.board.loading(record_.request(), now);
    if (keeper_ != nullptr) foreseen_.reset();  // what was foretold knows of no load
    return Ok{};
}

/// Hands in every sequence, or none.
Status Generation::submit(Stay stay) {
    flights_ = boarding_;
    std::vector<SeqId> seqs;
    for (const Choice& choice : choices_) seqs.push_back(choice.seq);
    flights_->add(*this, std::move(place_), std::move(stay), seqs);
    runtime::Place& place = *flights_->place_of(*this);
    for (size_t i = 0; i < sequences_.size(); ++i) {
        Status sent = inbox_->submit(place, std::move(sequences_[i]));
        if (sent) continue;
        flights_->leave(*this);  // cancels those that were taken
        for (size_t j = i; j < seqs.size(); ++j) flights_->forget(seqs[j]);
        flights_ = nullptr;
        return sent;
    }
    sequences_.clear();
    return Ok{};
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

// Newcomers are foretold for one prompt of the usual class.
void Generation::foresee(const Outlook& outlook) {
    if (request_.priority != Priority::normal || prompts_.size() != 1) return;
    uint64_t tokens = 0, words = 0;
    for (const AdmittedPrompt& prompt : prompts_) tokens += prompt.ids.size();
    for (const SequenceRequest& sequence : sequences_) words = std::max<uint64_t>(words, sequence.max_new_tokens);
    constexpr uint64_t kMost = UINT32_MAX;
    foreseen_ = outlook.newcomer(request_.model->model, static_cast<uint32_t>(std::min(tokens, kMost)),
                                 static_cast<uint32_t>(std::min(words, kMost)), steady_now());
}

void Generation::add_fields(HttpReply& reply) const {
    if (!foreseen_) return;
    reply.fields.emplace_back("x-cadans-queue-place", std::to_string(foreseen_->place));
    reply.fields.emplace_back("x-cadans-first-token-ms", std::to_string(foreseen_->first_token / 1000));
    reply.fields.emplace_back("x-cadans-finish-ms", std::to_string(foreseen_->finish / 1000));
}

Generation::Choice* Generation::find(SeqId seq) noexcept {
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
    if (choice->reason && event.kind != EventKind::finished) return;
    record_.on(event);
    switch (event.kind) {
        case EventKind::step_share:
            choice->prompt_computed = event.position;
            choice->prompt_cached = event.cached;
            choice->reuse_end = event.reuse_end;
            choice->reuse_position = event.reuse_position;
            if (!prefill_begin_) prefill_begin_ = event.begin;
            progress_due_ = true;
            break;
        case EventKind::token:
            if (!text_begin_) text_begin_ = steady_now();
            on_token(*choice, event);
            break;
        case EventKind::prompt_score:
            if (event.position == choice->pending.scored.size() && event.position < choice->prompt->offsets.size())
                choice->pending.scored.push_back({event.score, choice->prompt->offsets[event.position], true});
            break;
        case EventKind::finished:
            on_finished(*choice, event);
            break;
        default:
            break;
    }
}

void Generation::on_token(Choice& choice, const Event& event) {
    const TokenId token = event.score.token;
    ++choice.tokens;
    ++choice.unflushed_tokens;
    if (request_.return_token_ids) choice.pending.ids.push_back(token);
    if (request_.logprobs)
        choice.pending.scored.push_back({event.score, choice.base_characters + choice.stream.characters(), true});
    // The end token is an event and a count, never text.
    if (request_.model->tokenizer->vocabulary().ends_generation(token) && !request_.ignore_eos) return;
    if (std::find(request_.stop_tokens.begin(), request_.stop_tokens.end(), token) != request_.stop_tokens.end())
        return;
    TextDelta delta = choice.stream.push(token);
    const bool stopped = delta.stopped;
    take_text(choice, std::move(delta));
    if (!stopped) return;
    choice.reason = FinishReason::stop;
    record_.closed(choice.seq);
    take_text(choice, choice.stream.finish(false));
    inbox_->cancel(choice.seq);
}

void Generation::on_finished(Choice& choice, const Event& event) {
    if (choice.reason) return;
    choice.reason = event.reason;
    if (event.reason != FinishReason::stop && event.reason != FinishReason::length) {
        if (!failure_) failure_ = ended_by_engine(event.reason);
        return;
    }
    take_text(choice, choice.stream.finish(event.reason == FinishReason::length));
}

void Generation::take_text(Choice& choice, TextDelta delta) {
    choice.pending.content += delta.content;
    choice.pending.reasoning += delta.reasoning;
}

void Generation::settled() {
    if (!request_.stream) note_text(steady_now());
    if (on_change && (request_.stream || complete())) on_change();
}

void Generation::write_ready(std::string& out) {
    for (Choice& choice : choices_) {
        ChoiceText& pending = choice.pending;
        const bool waits_for_scores = choice.tokens == 0 && !choice.reason;  // an echo comes with its scores
        if ((pending.content.empty() && pending.reasoning.empty()) || waits_for_scores) continue;
        writer_->text(out, pending);
        pending.content.clear();
        pending.reasoning.clear();
        pending.ids.clear();
        pending.scored.clear();
        pending.first = false;
        choice.in_flush = true;
    }
    if (!out.empty()) return;
    // The last finish waits for write_end(): the figures ride in it.
    for (Choice& choice : choices_) {
        if (!choice.reason || choice.finish_written || open_finishes() <= 1 || failure_) continue;
        writer_->finish(out, choice.pending, *choice.reason, nullptr);
        choice.finish_written = true;
    }
    if (out.empty() && request_.include_progress && progress_due_) write_progress(out);
}

void Generation::write_progress(std::string& out) {
    progress_due_ = false;
    progress_at_ = steady_now();
    Progress progress;
    bool words = false;
    for (const Choice& choice : choices_) {
        progress.total += static_cast<uint32_t>(choice.prompt->ids.size());
        progress.computed += choice.prompt_computed;
        progress.cached += choice.prompt_cached;
        words = words || choice.tokens > 0;
    }
    if (words) return;
    if (prefill_begin_) {
        progress.phase = "prefill";
        const uint32_t done = progress.computed - std::min(progress.cached, progress.computed);
        if (done > 0) {
            const double seconds = static_cast<double>(steady_now() - *prefill_begin_) / kNanosPerSecond;
            progress.seconds_left = seconds / done * (progress.total - std::min(progress.computed, progress.total));
        }
    } else if (load_begin_ && keeper_ != nullptr) {
        progress.phase = "load";
        const double share = keeper_->share_done();
        const double seconds = static_cast<double>(steady_now() - *load_begin_) / kNanosPerSecond;
        progress.percent = 100 * share;
        if (share > 0) progress.seconds_left = seconds / share * (1 - share);
    } else if (flights_ != nullptr) {
        progress.queue_place = flights_->older_than(*this);
    }
    foretell(progress);
    writer_->progress(out, progress);
}

namespace {

Nanos left_of(const Forecast& forecast) {
    return std::max<Nanos>(0, forecast.made + forecast.first_token * kNanosPerMicro - steady_now());
}

}  // namespace

/// What the engine forecasts is better than what the pace so far says: it knows of the others.
void Generation::foretell(Progress& progress) const {
    if (flights_ == nullptr) return;
    if (foreseen_ && !prefill_begin_) {
        progress.queue_place = foreseen_->place;
        progress.seconds_left = static_cast<double>(left_of(*foreseen_)) / kNanosPerSecond;
    }
    for (const Choice& choice : choices_) {
        const Forecast* forecast = flights_->forecast_of(choice.seq);
        if (forecast == nullptr || forecast->first_token == 0) continue;
        const double seconds = static_cast<double>(left_of(*forecast)) / kNanosPerSecond;
        if (&choice == choices_.data() || seconds > progress.seconds_left.value_or(0)) progress.seconds_left = seconds;
        if (!prefill_begin_) progress.queue_place = forecast->place;
    }
}

void Generation::flushed(Nanos begin, Nanos end, bool waited) {
    for (Choice& choice : choices_) {
        if (!choice.in_flush) continue;
        record_.flushed(choice.seq, choice.unflushed_tokens, end);
        ledger_->board.flushed(record_.request(), choice.unflushed_tokens, end, ledger_->metrics.stall_limit());
        choice.unflushed_tokens = 0;
        choice.in_flush = false;
    }
    note_text(waited ? begin : end);
    if (waited) record_.waited_for_client({begin, end});
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
        std::all_of(choices_.begin(), choices_.end(), [](const Choice& choice) { return choice.reason.has_value(); });
    if (!ended || !request_.stream) return ended;
    return open_finishes() == 1 && std::all_of(choices_.begin(), choices_.end(), [](const Choice& choice) {
               return choice.pending.content.empty() && choice.pending.reasoning.empty();
           });
}

metrics::Outcome Generation::outcome() const noexcept {
    if (failure_) return metrics::Outcome::error;
    for (const Choice& choice : choices_)
        if (choice.reason == FinishReason::length) return metrics::Outcome::length;
    return metrics::Outcome::stop;
}

// Of the first choice: the others find what it leaves.
std::optional<CacheMiss> Generation::cache_miss() const {
    const Choice& first = choices_.front();
    if (first.reuse_end == ReuseEnd::whole) return std::nullopt;
    CacheMiss miss{name(first.reuse_end), first.reuse_position, {}};
    const std::span<const TokenId> ids = first.prompt->ids;
    const size_t begin = std::min<size_t>(first.reuse_position, ids.size());
    const size_t count = std::min<size_t>(kMissTokensShown, ids.size() - begin);
    miss.text = text::detokenize(request_.model->tokenizer->vocabulary(), ids.subspan(begin, count),
                                 {.skip_control = false, .at_start = begin == 0});
    return miss;
}

// The one place where a request is counted, whatever became of it.
Closing Generation::close(metrics::Outcome outcome) {
    check(!over_, "a request is closed once");
    const Nanos now = steady_now();
    if (stop_waiting()) load_is_over(now);
    note_text(now);
    over_ = true;
    record_.done(outcome, now);
    Closing closing;
    const std::optional<StepCost> cost = request_.model->step_cost();
    closing.figures = metrics::figures_of(record_, cost ? metrics::RowCost::of(*cost) : metrics::cost_by_rows);
    closing.timings = metrics::timings_of(record_);
    closing.durations = metrics::ollama_durations_of(record_);
    for (const Choice& choice : choices_) {
        closing.completion_tokens += choice.tokens;
        if (const std::optional<uint32_t> thinking = choice.stream.reasoning_tokens())
            closing.reasoning_tokens = closing.reasoning_tokens.value_or(0) + *thinking;
    }
    ledger_->metrics.count(record_, closing.figures);
    ledger_->board.done(record_.request(), metrics::kOutcomeNames[static_cast<size_t>(outcome)], now);
    remember(closing, outcome);
    return closing;
}

/// Writes the `cadans` object, for the client and for those who ask later.
void Generation::remember(Closing& closing, metrics::Outcome outcome) {
    const metrics::Figures& figures = closing.figures;
    RequestFacts facts{.id = id_,
                       .client_request_id = client_request_id_,
                       .unix_ms = unix_millis() - (steady_now() - record_.accepted()) / kNanosPerMilli,
                       .model = request_.model->name,
                       .route = name(request_.form),
                       .priority = name(request_.priority),
                       .client = request_.user,
                       .streamed = request_.stream,
                       .seed = seed_,
                       .outcome = metrics::kOutcomeNames[static_cast<size_t>(outcome)],
                       .stalls = stalls(),
                       .forecast = {},
                       .held_up_by = {},
                       .remembered_tokens = remembered_tokens(),
                       .trace_id = {},
                       .cache_miss = cache_miss()};
    if (const LiveRequest* live = ledger_->board.find(record_.request())) {
        facts.held_up_by = live->worst_holders(kHoldersShown);
        const std::optional<Nanos> first = record_.streams().front().first_token;
        if (first && live->foretold_first_token)
            facts.forecast = {*live->foretold_first_token - record_.accepted(), *first - *live->foretold_first_token};
    }
    if (facts.forecast) ledger_->metrics.count_forecast(facts.forecast->error);
    if (trace_parent_ || ledger_->spans.on()) facts.trace_id = send_spans(figures, outcome);
    JsonWriter json(closing.cadans);
    write_cadans(json, facts, figures);

    Archive& archive = ledger_->archive;
    history::FinishedRequest kept = finished_request(facts, figures);
    kept.gaps.add(record_.flush_gaps());
    kept.record = closing.cadans;
    std::string on_disk = closing.cadans;
    std::function<std::string()> prompt;
    if (archive.options().prompts) {
        prompt = [ids = prompts_.front().ids, &vocabulary = request_.model->tokenizer->vocabulary()] {
            return text::detokenize(vocabulary, ids, {.skip_control = false, .at_start = true});
        };
    } else if (facts.cache_miss) {
        facts.cache_miss->text.clear();
        on_disk.clear();
        JsonWriter again(on_disk);
        write_cadans(again, facts, figures);
    }
    archive.remember(std::move(kept), std::move(on_disk), std::move(prompt));
}

/// Returns the id of the trace that it is part of.
std::string Generation::send_spans(const metrics::Figures& figures, metrics::Outcome outcome) {
    if (!ledger_->spans.on()) return trace_parent_->trace_id;
    const bool chat = request_.form == AnswerForm::chat || request_.form == AnswerForm::ollama_chat;
    const std::string operation = chat ? "chat" : "text_completion";
    Trace trace;
    trace.parent = trace_parent_;
    trace.state = trace_state_;
    trace.failed = outcome == metrics::Outcome::error;
    trace.phases = metrics::phase_spans(record_, figures);
    trace.whole = {operation + " " + request_.model->name, record_.accepted(), *record_.done()};
    // Names of OpenTelemetry's GenAI conventions where they have them.
    auto& attributes = trace.whole.attributes;
    attributes = {{"gen_ai.operation.name", operation},
                  {"gen_ai.request.model", request_.model->name},
                  {"gen_ai.response.id", id_},
                  {"gen_ai.usage.input_tokens", int64_t{figures.prompt_tokens}},
                  {"gen_ai.usage.output_tokens", int64_t{figures.output_tokens}},
                  {"cadans.outcome", std::string(metrics::kOutcomeNames[static_cast<size_t>(outcome)])},
                  {"cadans.cached_tokens", int64_t{figures.cached_tokens}},
                  {"cadans.cold", figures.cold}};
    if (figures.ttft_ns) attributes.emplace_back("cadans.ttft_ns", *figures.ttft_ns);
    for (uint32_t i = 0; i < metrics::kCauses; ++i)
        if (figures.receipt.ns[i] > 0)
            attributes.emplace_back(std::string("cadans.receipt_ns.") + metrics::kCauseNames[i], figures.receipt.ns[i]);
    return ledger_->spans.send(std::move(trace), unix_millis() * kNanosPerMilli - steady_now());
}

uint32_t Generation::stalls() const {
    const Nanos limit = ledger_->metrics.stall_limit();
    return static_cast<uint32_t>(
        std::ranges::count_if(record_.flush_gaps(), [limit](Nanos gap) { return gap > limit; }));
}

/// Whole pages of the first prompt stay behind for the next that begins alike, once it has been read.
std::optional<uint32_t> Generation::remembered_tokens() const {
    const Choice& first = choices_.front();
    const auto tokens = static_cast<uint32_t>(first.prompt->ids.size());
    if (first.reuse_end == ReuseEnd::off || !request_.cache_prompt || first.prompt_computed < tokens)
        return std::nullopt;
    const uint32_t whole = tokens / kPageTokens * kPageTokens;
    return whole > 0 ? std::optional(whole) : std::nullopt;
}

void Generation::write_end(std::string& out) {
    const Closing closing = close(outcome());
    if (failure_) {
        if (flights_ != nullptr) flights_->leave(*this);
        return writer_->error(out, *failure_);
    }
    for (Choice& choice : choices_) {
        if (choice.finish_written) continue;
        choice.finish_written = true;
        writer_->finish(out, choice.pending, *choice.reason, &closing);
    }
    writer_->end(out, closing);
}

HttpReply Generation::reply() {
    const Closing closing = close(outcome());
    if (failure_) {
        if (flights_ != nullptr) flights_->leave(*this);
        return error_reply(*failure_, writer_->dialect());
    }
    std::vector<ChoiceText> texts;
    std::vector<FinishReason> reasons;
    for (Choice& choice : choices_) {
        texts.push_back(std::move(choice.pending));
        reasons.push_back(*choice.reason);
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

void Generation::abandon() {
    if (flights_ != nullptr) flights_->leave(*this);
    if (!over_ && ledger_) close(metrics::Outcome::cancelled);
}

}  // namespace cadans::serve
