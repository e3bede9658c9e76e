// What a client hears before its first word: the part of Generation that foretells.
#include <algorithm>

#include "base/clock.h"
#include "serve/generation.h"

namespace cadans::serve {

namespace {

double seconds_until(Nanos time) {
    return static_cast<double>(std::max<Nanos>(0, time - steady_now())) / kNanosPerSecond;
}

}  // namespace

// Newcomers are foretold for one prompt of the usual class.
void Generation::foresee(const Outlook& outlook) {
    if (request_.priority != Priority::normal || prompts_.size() != 1) return;
    const SequenceRequest& sequence = sequences_.front();
    foreseen_ = outlook.newcomer(sequence.model, static_cast<uint32_t>(sequence.prompt.size()), sequence.max_new_tokens,
                                 steady_now());
}

void Generation::add_fields(HttpReply& reply) const {
    if (!foreseen_) return;
    reply.fields.emplace_back("x-cadans-queue-place", std::to_string(foreseen_->place));
    reply.fields.emplace_back("x-cadans-first-token-ms", std::to_string(foreseen_->first_token / 1000));
    reply.fields.emplace_back("x-cadans-finish-ms", std::to_string(foreseen_->finish / 1000));
}

void Generation::write_progress(std::string& out) {
    progress_due_ = false;
    progress_at_ = steady_now();
    Progress progress;
    bool words = false;
    for (const Choice& choice : choices_) {
        progress.total += choice.prompt_tokens();
        progress.computed += choice.reading().computed;
        progress.cached += choice.reading().cached;
        words = words || choice.tokens() > 0;
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

/// What the engine forecasts is better than what the pace so far says: it knows of the others.
void Generation::foretell(Progress& progress) const {
    if (flights_ == nullptr) return;
    if (foreseen_ && !prefill_begin_) {
        progress.queue_place = foreseen_->place;
        progress.seconds_left = seconds_until(foreseen_->first_token_at());
    }
    for (const Choice& choice : choices_) {
        const Forecast* forecast = flights_->forecast_of(choice.seq);
        if (forecast == nullptr || forecast->first_token == 0) continue;
        const double seconds = seconds_until(forecast->first_token_at());
        if (&choice == choices_.data() || seconds > progress.seconds_left.value_or(0)) progress.seconds_left = seconds;
        if (!prefill_begin_) progress.queue_place = forecast->place;
    }
}

}  // namespace cadans::serve
