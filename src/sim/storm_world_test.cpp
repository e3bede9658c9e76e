#include "sim/testing/storm.h"

#include <algorithm>

#include "base/check.h"
#include "metrics/figures.h"
#include "sched/policies.h"
#include "sched/testing/random_house.h"

namespace cadans::sim {

/// The fake model behind the real seam. A step takes some time; some items fail.
class Storm::HashExecutor final : public Executor {
  public:
    HashExecutor(Storm& storm, const sched::Scheduler& scheduler)
        : storm_(storm), model_(scheduler.house(), scheduler.pages()) {}

    void submit(const StepPlan& plan) override {
        check(!busy_, "one step at a time");
        const auto fails = [&](SeqId) { return storm_.chance(1) && storm_.chance(20); };
        wrong = model_.run(plan, storm_.now_, fails, result_);
        result_.end = storm_.now_ + 1 + static_cast<Nanos>(storm_.draw(plan.rows() * 200'000 + 1));
        busy_ = true;
    }
    const StepResult* poll() override {
        if (!busy_ || storm_.now_ < result_.end) return nullptr;
        busy_ = false;
        return &result_;
    }
    Nanos end() const noexcept { return result_.end; }
    bool busy() const noexcept { return busy_; }

    std::string wrong;  ///< the first page that does not hold what it should

  private:
    Storm& storm_;
    sched::FakeExecutor model_;
    StepResult result_;
    bool busy_ = false;
};

/// What the storm itself knows of one sequence, apart from the server.
struct Storm::Answer {
    uint32_t prompt = 0;
    std::vector<TokenId> tokens;  ///< the whole true answer
    bool ends_by_token = false;
    bool score = false;
    uint32_t seen = 0, scores = 0;
    bool finished = false;
};

struct Storm::Client {
    Client(RequestId request, Nanos at) : record(request, at) {}

    metrics::RequestRecord record;
    runtime::Place place;
    std::map<SeqId, Answer> answers;
    uint32_t unread = 0;
    Nanos pause = 0;  ///< between two of its reads; 0: reads at once
    std::optional<Nanos> waiting_since;
    bool gone = false;
    bool slow_end = false;
};

uint64_t Storm::draw(uint64_t below) { return mix64(mix64(seed_ ^ 0x5701) + ++draws_) % below; }

sched::Policy Storm::random_policy() {
    if (chance(15)) return sched::erratic();
    const auto names = sched::policy_names();
    return *sched::policy_by_name(chance(50) ? names.front() : names[draw(names.size())]);
}

Storm::Storm(uint64_t seed, runtime::Witness* witness)
    : seed_(seed),
      house_(sched::random_house(*this)),
      policy_(random_policy()),
      drafter_(house_, seed),
      scheduler_(house_, policy_, chance(75) ? &drafter_ : nullptr),
      inbox_(scheduler_.house(), house_.limits.max_running + static_cast<uint32_t>(draw(12))),
      fanout_({}),
      executor_(std::make_unique<HashExecutor>(*this, scheduler_)),
      loop_(inbox_, scheduler_, *executor_, fanout_, witness) {
    const uint64_t requests = 5 + draw(chance(5) ? 300 : 35);
    const uint64_t pause = 1 + draw(50'000'000);
    Nanos at = 0;
    for (uint64_t i = 0; i < requests; i++) heap_.push(at += static_cast<Nanos>(draw(pause)), What::arrival);
    if (chance(6))
        heap_.push(static_cast<Nanos>(draw(static_cast<uint64_t>(at) + 1)),
                   chance(50) ? What::draining : What::stopping);
}

Storm::~Storm() = default;

std::vector<TokenId> Storm::random_prompt(const ModelFacts& model) {
    std::vector<TokenId> prompt;
    if (!stems_.empty() && chance(60)) {
        const auto& [of, stem] = stems_[draw(stems_.size())];
        if (of == model.model)
            prompt.assign(stem.begin(), stem.begin() + static_cast<std::ptrdiff_t>(draw(stem.size() + 1)));
    }
    const uint64_t more = 1 + draw(chance(15) ? 250 : 50);
    for (uint64_t i = 0; i < more; i++) prompt.push_back(TokenId{static_cast<uint32_t>(draw(model.vocab_size))});
    return prompt;
}

Storm::Answer Storm::expected_of(const SequenceRequest& request) const {
    Answer answer;
    answer.prompt = static_cast<uint32_t>(request.prompt.size());
    answer.score = request.score_prompt;
    uint64_t history = index(request.model);
    for (const TokenId token : request.prompt) history = sched::FakeExecutor::add(history, token);
    while (answer.tokens.size() < request.max_new_tokens && !answer.ends_by_token) {
        const TokenId token = sched::FakeExecutor::next_token(history, house_.find(request.model)->vocab_size);
        answer.tokens.push_back(token);
        history = sched::FakeExecutor::add(history, token);
        const auto& ends = request.end_tokens;
        answer.ends_by_token = std::find(ends.begin(), ends.end(), token) != ends.end();
    }
    return answer;
}

std::string Storm::arrive() {
    const uint64_t number = next_request_++;
    const auto choices = static_cast<uint32_t>(chance(80) ? 1 : 1 + draw(3));
    counts_.requests++;
    auto place = inbox_.reserve(choices, now_);
    if (!place) {
        counts_.busy++;
        const uint32_t wait = inbox_.retry_after_seconds(now_);
        return wait >= 1 && wait <= 600 ? "" : "a refused one is told to come back never, or at once";
    }
    Client& client = clients_.emplace(number, Client(RequestId{number}, now_)).first->second;
    client.place = *std::move(place);
    client.record.parsed(now_);
    client.record.tokenized(now_);
    client.pause = chance(25) ? static_cast<Nanos>(1 + draw(400'000'000)) : 0;
    SequenceRequest request;
    const ModelFacts& model = house_.models[draw(house_.models.size())];
    request.request = RequestId{number};
    request.model = model.model;
    request.prompt = random_prompt(model);
    request.max_new_tokens = static_cast<uint32_t>(chance(8) ? 0 : draw(chance(40) ? 200 : 30));
    for (uint32_t t = 0; chance(50) && t < model.vocab_size && request.end_tokens.size() < 3; t++)
        if (draw(model.vocab_size) < 4) request.end_tokens.push_back(TokenId{t});
    request.score_prompt = chance(15);
    request.cache_prompt = chance(90);
    request.priority = static_cast<Priority>(draw(3));
    request.scope = draw(3);
    for (uint32_t choice = 0; choice < choices; choice++) {
        SequenceRequest one = request;
        one.seq = inbox_.new_seq();
        one.sampling.choice = choice;
        const SeqId seq = one.seq;
        drafter_.tell(seq, one.model, one.prompt);
        Answer answer = expected_of(one);
        if (!inbox_.submit(client.place, std::move(one))) {
            counts_.refused++;
            continue;
        }
        client.record.queued(seq, answer.prompt, choice == 0, now_);
        client.answers.emplace(seq, std::move(answer));
        client_of_.emplace(seq, number);
    }
    if (client.answers.empty()) {
        clients_.erase(number);
        return {};
    }
    if (chance(30)) stems_.emplace_back(request.model, std::move(request.prompt));
    if (chance(20)) heap_.push(now_ - late_ + static_cast<Nanos>(draw(300'000'000)), What::departure, number);
    return {};
}

void Storm::leave(uint64_t number) {
    const auto found = clients_.find(number);
    if (found == clients_.end()) return;  // it has its answer already
    found->second.gone = true;
    for (const auto& [seq, answer] : found->second.answers) inbox_.cancel(seq);  // those that ended too: harmless
}

void Storm::read(uint64_t number) {
    const auto found = clients_.find(number);
    if (found == clients_.end()) return;
    Client& client = found->second;
    if (client.waiting_since) client.record.waited_for_client({*client.waiting_since, now_});
    client.waiting_since.reset();
    client.unread = 0;
}

void Storm::drain() {
    inbox_.drain();
    counts_.drains++;
}

void Storm::stop() {
    inbox_.cancel_all();
    counts_.stops++;
    stopped_ = true;
}

std::string Storm::turn() {
    const runtime::Loop::Next next = loop_.turn(now_);
    scheduler_.check_invariants();
    if (!executor_->wrong.empty()) return executor_->wrong;
    if (!drafter_.wrong.empty()) return drafter_.wrong;
    if (next.now) heap_.push(executor_->end() - late_, What::step_end);
    fanout_.take(events_);
    for (const Event& event : events_) {
        if (std::string wrong = look_at(event); !wrong.empty())
            return "sequence " + std::to_string(index(event.seq)) + ": " + wrong;
    }
    return look_around();
}

std::string Storm::look_at(const Event& event) {
    for (const uint64_t part : {static_cast<uint64_t>(event.kind), index(event.seq), uint64_t{index(event.score.token)},
                                uint64_t{event.position}, uint64_t{event.rows}, static_cast<uint64_t>(event.time)})
        digest_ = mix64(digest_ ^ part);
    if (event.time < last_event_ || event.begin > event.time || event.time > now_) return "time goes back";
    last_event_ = event.time;
    if (event.kind == EventKind::step_begin) {
        counts_.steps++;
        for (auto& [number, client] : clients_) client.record.on(event);
        return {};
    }
    const auto owner = client_of_.find(event.seq);
    if (owner == client_of_.end()) return "an event of a stranger, or after the end";
    Client& client = clients_.find(owner->second)->second;
    Answer& answer = client.answers.find(event.seq)->second;
    client.record.on(event);
    switch (event.kind) {
        case EventKind::token:
            return look_at_token(client, answer, event);
        case EventKind::prompt_score:
            if (!answer.score) return "a score that nobody asked for";
            return event.position == ++answer.scores ? "" : "a score out of order";
        case EventKind::preempted:
            counts_.preemptions++;
            return {};
        case EventKind::step_share:
            counts_.cached += event.cached;
            if (event.phase == Phase::verify) counts_.drafted += event.rows - 1;
            counts_.rejected += event.rejected;
            return event.cached < answer.prompt ? "" : "the whole prompt came from the cache";
        case EventKind::finished:
            return look_at_end(client, answer, event);
        default:
            return {};
    }
}

std::string Storm::look_at_token(Client& client, Answer& answer, const Event& event) {
    if (answer.seen >= answer.tokens.size()) return "a token too many";
    if (event.score.token != answer.tokens[answer.seen]) return "a wrong token";
    if (event.position != answer.prompt + answer.seen) return "a token out of place";
    answer.seen++;
    if (client.gone) return {};
    if (client.pause == 0 || client.unread < kBuffer) client.record.flushed(event.seq, 1, event.time);
    if (client.pause == 0) return {};
    if (client.unread++ == 0) {
        client.waiting_since = now_;
        heap_.push(now_ - late_ + client.pause, What::reading, index(event.request));
    }
    if (client.unread > kBuffer) {
        client.slow_end = true;
        leave(index(event.request));
    }
    return {};
}

std::string Storm::look_at_end(Client& client, Answer& answer, const Event& event) {
    answer.finished = true;
    client_of_.erase(event.seq);
    const auto due = answer.ends_by_token ? FinishReason::stop : FinishReason::length;
    switch (event.reason) {
        case FinishReason::cancelled:
            if (!client.gone && !stopped_) return "cancelled by nobody";
            counts_.cancelled++;
            break;
        case FinishReason::error:
            counts_.failed++;
            break;
        case FinishReason::refused:
            return "refused after it was let in";
        default:
            if (event.reason != due) return "ended for the wrong reason";
            if (answer.seen != answer.tokens.size()) return "ended before its last token";
            if (answer.score && answer.scores + 1 != answer.prompt) return "ended before its last score";
            counts_.whole++;
    }
    for (const auto& [seq, other] : client.answers)
        if (!other.finished) return {};
    return end(client);
}

std::string Storm::end(Client& client) {
    counts_.too_slow += client.slow_end;
    if (client.waiting_since) client.record.waited_for_client({*client.waiting_since, now_});
    client.record.done(client.gone ? metrics::Outcome::cancelled : metrics::Outcome::length, now_);
    const metrics::Figures figures = metrics::figures_of(client.record);
    const uint64_t number = index(client.record.request());
    if (figures.receipt.total() != figures.total_ns) return "a receipt does not sum to its total";
    for (const Nanos part : figures.receipt.ns)
        if (part < 0) return "a receipt has a part below nothing";
    clients_.erase(number);
    return {};
}

std::string Storm::look_around() {
    uint32_t places = 0;
    for (const auto& [number, client] : clients_) {
        places += client.place.sequences();
        if (client.unread > kBuffer + scheduler_.house().limits.max_running && !client.gone) return "a buffer grows";
    }
    if (places != inbox_.in_flight()) return "places held are not those of the clients inside";
    if (places > inbox_.in_flight_max()) return "more inside than may be";
    const Occupancy occupancy = fanout_.occupancy();
    if (occupancy.bytes_used + occupancy.bytes_cached > occupancy.bytes_total) return "more pages than there are";
    if (occupancy.running > house_.limits.max_running) return "more run than may";
    return {};
}

std::string Storm::look_at_the_end() {
    if (!scheduler_.idle() || !client_of_.empty() || !clients_.empty()) return "somebody never ended";
    if (inbox_.in_flight() != 0) return "a place was not given back";
    if (scheduler_.pages().leased_bytes() != 0) return "pages are still leased";
    return {};
}

std::string Storm::run() {
    for (uint64_t happenings = 0; !heap_.empty(); happenings++) {
        if (happenings > 200'000) return "it never ends";
        const Happening one = heap_.pop();
        if (chance(1) && chance(20)) {  // the machine slept
            late_ += static_cast<Nanos>(draw(uint64_t{3600} * kNanosPerSecond));
            counts_.jumps++;
        }
        now_ = std::max(now_, one.at + late_);
        std::string wrong;
        if (one.what == What::arrival) wrong = arrive();
        if (one.what == What::departure) leave(one.who);
        if (one.what == What::reading) read(one.who);
        if (one.what == What::draining) drain();
        if (one.what == What::stopping) stop();
        if (!wrong.empty()) return wrong;
        if (executor_->busy() && executor_->end() > now_) continue;
        if (wrong = turn(); !wrong.empty()) return wrong;
    }
    return look_at_the_end();
}

}  // namespace cadans::sim
