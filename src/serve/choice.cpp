#include "serve/choice.h"

#include <algorithm>
#include <utility>

#include "serve/doors.h"

namespace cadans::serve {

namespace {

/// Mistral's templates take ids of nine characters and no others back.
std::string fresh_call_id(CallStyle style) {
    constexpr size_t kShort = 9;
    const bool is_short = style == CallStyle::listed || style == CallStyle::named;
    return is_short ? fresh_id("").substr(0, kShort) : fresh_id("call_");
}

}  // namespace

Choice::Choice(const GenerationRequest& request, const AdmittedPrompt& prompt, uint32_t index,
               TokenStreamOptions options, std::shared_ptr<Embedding> embedding)
    : request_(&request),
      prompt_(&prompt),
      stream_(request.model->tokenizer->vocabulary(), std::move(options)),
      embedding_(std::move(embedding)) {
    const bool has_form = request.text_form.kind != TextForm::Kind::any;
    if (request.tools.choice != ToolChoice::none) calls_.emplace(request.model->calls.style, has_form);
    pending_.index = index;
    if (request.return_token_ids) pending_.prompt_ids = prompt.ids;
    if (request.echo) echo();
}

void Choice::echo() {
    pending_.content = prompt_->echo;
    echoed_characters_ = count_characters(prompt_->echo);
    if (!request_->logprobs) return;
    ScoredToken first;
    first.score.token = prompt_->ids.front();
    first.scored = false;
    pending_.scored.push_back(first);
}

void Choice::read(const Event& share) {
    reading_ = {share.position, share.cached, share.reuse_end, share.reuse_position};
}

void Choice::score_prompt(const Event& event) {
    if (event.position == pending_.scored.size() && event.position < prompt_->offsets.size())
        pending_.scored.push_back({event.score, prompt_->offsets[event.position], true});
}

bool Choice::take(const Event& event) {
    const TokenId token = event.score.token;
    ++tokens_;
    ++unflushed_tokens_;
    if (request_->return_token_ids) pending_.ids.push_back(token);
    if (request_->logprobs) pending_.scored.push_back({event.score, echoed_characters_ + stream_.characters(), true});
    // The end token is an event and a count, never text.
    if (request_->model->tokenizer->vocabulary().ends_generation(token) && !request_->ignore_eos) return false;
    if (std::ranges::find(request_->stop_tokens, token) != request_->stop_tokens.end()) return false;
    TextDelta delta = stream_.push(token);
    const bool stopped = delta.stopped;
    if (stopped) pending_.stopped_by = request_->stop[delta.which];
    take_text(std::move(delta));
    if (!stopped) return false;
    reason_ = FinishReason::stop;
    take_text(stream_.finish(false), true);
    return true;
}

bool Choice::end(FinishReason reason) {
    reason_ = reason;
    const bool whole = reason == FinishReason::stop || reason == FinishReason::length;
    if (whole) take_text(stream_.finish(reason == FinishReason::length), true);
    return whole;
}

void Choice::take_text(TextDelta delta, bool last) {
    pending_.reasoning += delta.reasoning;
    if (!calls_) {
        pending_.content += delta.content;
        return;
    }
    take_calls(calls_->push(delta.content));
    if (last) take_calls(calls_->finish());
}

void Choice::take_calls(ReadText read) {
    pending_.content += read.content;
    for (CallPiece& piece : read.calls) {
        if (piece.first) call_ids_.push_back(fresh_call_id(request_->model->calls.style));
        pending_.called = piece.last;  // what is cut is no call: a client would act on half its arguments
        std::vector<CallText>& calls = pending_.calls;
        if (!calls.empty() && calls.back().index == piece.index) {
            calls.back().arguments += piece.arguments;
            calls.back().last = piece.last;
            continue;
        }
        calls.push_back({.index = piece.index,
                         .id = call_ids_[piece.index],
                         .name = std::move(piece.name),
                         .arguments = std::move(piece.arguments),
                         .first = piece.first,
                         .last = piece.last});
    }
}

bool Choice::has_piece() const noexcept {
    const bool waits_for_scores = tokens_ == 0 && !reason_;  // an echo comes with its scores
    return pending_.has_text() && !waits_for_scores;
}

void Choice::shown() {
    pending_.content.clear();
    pending_.reasoning.clear();
    pending_.calls.clear();
    pending_.ids.clear();
    pending_.scored.clear();
    pending_.first = false;
    in_flush_ = true;
}

uint32_t Choice::flushed() {
    in_flush_ = false;
    return std::exchange(unflushed_tokens_, 0);
}

ChoiceText Choice::take_whole() {
    if (embedding_ != nullptr) pending_.embedding = embedding_->vector;
    return std::move(pending_);
}

}  // namespace cadans::serve
