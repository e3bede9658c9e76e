#include "sched/sequence.h"

#include "sched/admission.h"

namespace cadans::sched {

Sequence::Sequence(SequenceRequest&& asked, kv::PagePool& pool, kv::PrefixTree* tree, uint32_t groups, uint64_t rank,
                   Nanos now)
    : request(std::move(asked)),
      prompt(static_cast<uint32_t>(request.prompt.size())),
      known_max(prompt + request.max_new_tokens),
      arrival(rank),
      admitted(now),
      pages(pool, tree, {request.model, request.scope, request.cache_prompt}, groups,
            tokens_computed_max(prompt, request.max_new_tokens)) {
    if (request.constraint != nullptr) constraint_at = request.constraint->start();
    known = std::move(request.prompt);
    known.reserve(known_max);
}

SequenceView Sequence::view() const noexcept {
    return {.seq = request.seq,
            .model = request.model,
            .priority = request.priority,
            .scope = request.scope,
            .arrival = arrival,
            .admitted = admitted,
            .last_step = last_step,
            .prompt = prompt,
            .known = known_count(),
            .computed = standing == Standing::waiting ? arrived : computed,
            .known_max = known_max,
            .preempted = preempted,
            .score = request.score_prompt};
}

Event Sequence::about(EventKind kind, Nanos time) const noexcept {
    Event event;
    event.kind = kind;
    event.seq = request.seq;
    event.request = request.request;
    event.time = time;
    return event;
}

}  // namespace cadans::sched
