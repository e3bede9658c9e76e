#include "sim/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/loop.h"
#include "runtime/plan_digest.h"
#include "sched/scheduler.h"
#include "sim/machine.h"
#include "sim/tape_reader.h"

namespace cadans::sim {
namespace {

/// Gives back what the tape says, and compares each plan's digest with the recorded one.
class TapeExecutor final : public Executor {
  public:
    void submit(const StepPlan& plan) override { plan_ = &plan; }
    const StepResult* poll() override {
        if (result_ == nullptr) return nullptr;
        plan_ = nullptr;
        return std::exchange(result_, nullptr);
    }

    /// What the next poll() answers. False: it cannot be the result of the plan in flight.
    bool play(const StepResult& result) {
        if (plan_ == nullptr || result.id != plan_->id || result.items.size() != plan_->items.size()) return false;
        for (size_t i = 0; i < result.items.size(); i++) {
            const ItemResult& got = result.items[i];
            const StepItem& item = plan_->items[i];
            const uint32_t accepted = got.accepted_end - got.accepted_begin;
            const bool drawn = item.drafts > 0 && !got.failed;
            if (got.seq != item.seq || got.computed < item.count - item.drafts || got.computed > item.count ||
                (drawn && accepted != got.computed) || accepted > (item.sample && !got.failed ? 1 + item.drafts : 0) ||
                got.scores_end - got.scores_begin > (item.score ? item.count : 0))
                return false;
            // One whose last row was computed has a token to show for it, unless it failed or wanted none.
            if (item.sample && !got.failed && accepted == 0) return false;
        }
        result_ = &result;
        return true;
    }

    const StepPlan* plan() const noexcept { return plan_; }

  private:
    const StepPlan* plan_ = nullptr;
    const StepResult* result_ = nullptr;
};

/// Guesses what the tape says was guessed.
class TapeDrafter final : public Drafter {
  public:
    /// What is guessed in the next plan.
    void play(std::span<const TapeTurn::Offer> offers) { offers_ = offers; }

    bool begin(const Newcomer& who) override { return who.how != Speculation::off; }
    void read(SeqId, std::span<const TokenId>) override {}
    Guess guess(SeqId seq, std::span<const TokenId>, std::span<TokenId> out) override {
        const auto offer = std::ranges::find(offers_, seq, &TapeTurn::Offer::seq);
        if (offer == offers_.end() || offer->tokens.size() > out.size()) return {};
        std::ranges::copy(offer->tokens, out.begin());
        return {static_cast<uint32_t>(offer->tokens.size()), offer->match};
    }
    void end(SeqId, std::span<const TokenId>) override {}

  private:
    std::span<const TapeTurn::Offer> offers_;
};

/// Collects steps of one kind.
class StepErrors {
  public:
    void add(Nanos took, Nanos predicted) {
        if (predicted <= 0) return;
        took_ += took;
        predicted_ += predicted;
        errors_.push_back(std::abs(static_cast<double>(took) / static_cast<double>(predicted) - 1));
    }

    StepError finish() {
        if (errors_.empty()) return {};
        std::ranges::sort(errors_);
        const auto part = [&](size_t percent) { return errors_[(errors_.size() * percent + 99) / 100 - 1]; };
        return {errors_.size(), static_cast<double>(took_) / static_cast<double>(predicted_), part(50), part(90)};
    }

  private:
    Nanos took_ = 0, predicted_ = 0;
    std::vector<double> errors_;
};

/// The loop with the tape on both of its sides.
class Player {
  public:
    Player(const TapeReader& tape, sched::Policy policy)
        : scheduler_(tape.house(), policy, &drafter_),
          costs_(tape.house().costs),
          inbox_(scheduler_.house(), UINT32_MAX),
          fanout_({}),
          loop_(inbox_, scheduler_, executor_, fanout_) {}

    /// Empty, or what is wrong with the turn.
    std::string play(const TapeTurn& turn, Replay& replay) {
        if (turn.has_result && !executor_.play(turn.result)) return "r is no result of the step in flight";
        if (turn.has_result) compare(turn.result, replay);
        for (const runtime::Command& command : turn.commands) {
            if (std::string wrong = say(command, turn.at, replay); !wrong.empty()) return wrong;
        }
        drafter_.play(turn.offers);
        const bool in_flight = executor_.plan() != nullptr && !turn.has_result;
        loop_.turn(turn.at);
        replay.turns++;
        listen(replay);
        const StepPlan* plan = in_flight ? nullptr : executor_.plan();
        replay.plans += turn.digest.has_value();
        last_end_ = plan != nullptr && turn.has_result ? std::optional(turn.result.end) : std::nullopt;
        const std::optional<uint64_t> digest =
            plan == nullptr ? std::nullopt : std::optional(runtime::plan_digest(*plan));
        if (digest != turn.digest)
            replay.first_difference = replay.turns;
        else
            replay.matched += digest.has_value();
        return {};
    }

    void finish(Replay& replay) {
        replay.reading = reading_.finish();
        replay.writing = writing_.finish();
        replay.between = spread_of(betweens_);
        replay.ttft = spread_of(ttfts_);
        replay.gap = spread_of(gaps_);
    }

  private:
    struct Stream {
        Nanos asked = 0;
        ModelId model{};
        std::optional<Nanos> last;
        runtime::Place place;
    };

    /// The step that has ended with its prediction, where it was all of one model.
    void compare(const StepResult& result, Replay& replay) {
        if (last_end_) betweens_.push_back(std::max<Nanos>(0, result.begin - *last_end_));
        const StepPlan& plan = *executor_.plan();
        if (plan.items.empty() || index(plan.items.front().model) >= costs_.size()) return;
        const ModelId model = plan.items.front().model;
        if (!std::ranges::all_of(plan.items, [model](const StepItem& item) { return item.model == model; })) return;
        const StepShape shape = costs_[index(model)].shape_of(plan);
        const Nanos predicted = costs_[index(model)].predict(shape) * kNanosPerMicro;
        const Nanos took = result.end - result.begin;
        (shape.prompt_context > 0 ? reading_ : writing_).add(took, predicted);
        if (index(model) == 0 && took > 0) replay.steps.push_back({shape, took});
    }

    std::string say(const runtime::Command& command, Nanos now, Replay& replay) {
        switch (command.kind) {
            case runtime::Command::Kind::admit: {
                Stream& stream = streams_[command.seq];
                auto place = inbox_.reserve(1, now);
                if (!place) return place.error().message;
                stream.place = *std::move(place);
                stream.asked = std::min(command.since, now);
                stream.model = command.request.model;
                replay.requests++;
                if (Status sent = inbox_.submit(stream.place, command.request); !sent) return sent.error().message;
                return {};
            }
            case runtime::Command::Kind::cancel:
                inbox_.cancel(command.seq);
                return {};
            case runtime::Command::Kind::cancel_all:
                inbox_.cancel_all();
                return {};
            case runtime::Command::Kind::learn:
                inbox_.learn(command.model, command.cost);
                return {};
            case runtime::Command::Kind::forget:
                for (const auto& [seq, stream] : streams_)
                    if (stream.model == command.model) return "a model is forgotten while a sequence of it is inside";
                inbox_.forget(command.model);
                return {};
        }
        return {};
    }

    void listen(Replay& replay) {
        fanout_.take(events_);
        for (const Event& event : events_) {
            const auto stream = streams_.find(event.seq);
            if (stream == streams_.end()) continue;
            if (event.kind == EventKind::finished) streams_.erase(stream);
            if (event.kind != EventKind::token) continue;
            replay.output_tokens++;
            if (stream->second.last)
                gaps_.push_back(event.time - *stream->second.last);
            else
                ttfts_.push_back(event.time - stream->second.asked);
            stream->second.last = event.time;
        }
    }

    TapeDrafter drafter_;
    sched::Scheduler scheduler_;
    std::vector<StepCost> costs_;  ///< by ModelId, as they were when the record began
    std::optional<Nanos> last_end_;
    StepErrors reading_, writing_;
    runtime::Inbox inbox_;
    runtime::Fanout fanout_;
    TapeExecutor executor_;
    runtime::Loop loop_;
    std::map<SeqId, Stream> streams_;
    std::vector<Event> events_;
    std::vector<Nanos> ttfts_, gaps_, betweens_;
};

}  // namespace

Result<Replay> replay(const std::string& path) {
    auto tape = TapeReader::open(path);
    if (!tape) return std::move(tape).error();
    const auto policy = policy_named(tape->policy());
    if (!policy) return policy.error();
    Replay out;
    out.policy = tape->policy();
    if (!tape->house().costs.empty()) out.cost = tape->house().costs.front();
    Player player(*tape, *policy);
    while (!out.first_difference) {
        auto turn = tape->next();
        if (!turn) return std::move(turn).error();
        if (*turn == nullptr) break;
        if (std::string wrong = player.play(**turn, out); !wrong.empty())
            return bad_input(fmt::format("{}: turn {}: {}", path, out.turns + 1, wrong), path);
    }
    player.finish(out);
    out.end = tape->end();
    return out;
}

}  // namespace cadans::sim
