// What is counted, kept and told of a request once it is over: the part of Generation that no client waits for.
#include <algorithm>

#include "base/clock.h"
#include "serve/generation.h"

namespace cadans::serve {

namespace {

constexpr size_t kMissTokensShown = 8;
constexpr size_t kHoldersShown = 4;

}  // namespace

// Of the first choice: the others find what it leaves.
std::optional<CacheMiss> Generation::cache_miss() const {
    const Choice& first = choices_.front();
    if (first.reading().reuse_end == ReuseEnd::whole) return std::nullopt;
    CacheMiss miss{name(first.reading().reuse_end), first.reading().reuse_position, {}};
    const std::span<const TokenId> ids = first.prompt().ids;
    const size_t begin = std::min<size_t>(first.reading().reuse_position, ids.size());
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
        closing.completion_tokens += choice.tokens();
        if (const std::optional<uint32_t> thinking = choice.thinking_tokens())
            closing.reasoning_tokens = closing.reasoning_tokens.value_or(0) + *thinking;
    }
    if (request_.tools.choice != ToolChoice::none || request_.text_form.kind != TextForm::Kind::any)
        request_.model->grammars->tidy();
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
        if (first && live->facts.foretold_first_token)
            facts.forecast = {*live->facts.foretold_first_token - record_.accepted(),
                              *first - *live->facts.foretold_first_token};
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
    const bool chat = request_.form == AnswerForm::chat || request_.form == AnswerForm::ollama_chat ||
                      request_.form == AnswerForm::messages || request_.form == AnswerForm::responses;
    const std::string operation = request_.embedding ? "embeddings" : chat ? "chat" : "text_completion";
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
    const uint32_t tokens = first.prompt_tokens();
    if (first.reading().reuse_end == ReuseEnd::off || !request_.cache_prompt || first.reading().computed < tokens)
        return std::nullopt;
    const uint32_t whole = tokens / kPageTokens * kPageTokens;
    return whole > 0 ? std::optional(whole) : std::nullopt;
}

}  // namespace cadans::serve
