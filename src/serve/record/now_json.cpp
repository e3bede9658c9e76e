#include "serve/record/now_json.h"

#include <algorithm>

namespace cadans::serve {

namespace {

constexpr size_t kHoldersShown = 4;

template <class Number>
void number_or_null(JsonWriter& json, const char* key, const std::optional<Number>& number) {
    json.key(key);
    number ? json.number(*number) : json.null();
}

double seconds(Nanos span) { return static_cast<double>(span) / kNanosPerSecond; }

std::optional<double> rate(uint64_t tokens, Nanos span) {
    if (tokens == 0 || span <= 0) return std::nullopt;
    return static_cast<double>(tokens) / seconds(span);
}

void write_spent(JsonWriter& json, const metrics::Spent& spent) {
    json.object();
    json.key("load").number(spent.load).key("queue").number(spent.queue);
    json.key("own_prefill").number(spent.own_prefill).key("own_decode").number(spent.own_decode);
    json.key("others_prefill").number(spent.others_prefill).key("others_decode").number(spent.others_decode);
    json.key("preempted").number(spent.preempted).key("other").number(spent.other);
    json.close();
}

void write_holders_of(JsonWriter& json, const LiveRequest& request) {
    json.array();
    for (const Holder& holder : request.worst_holders(kHoldersShown)) {
        json.object().key("id").text(holder.id).key("phase").text(holder.phase());
        json.key("ns").number(holder.total()).close();
    }
    json.close();
}

/// What the engine said of its first word: place and seconds left.
void write_forecast(JsonWriter& json, const LiveRequest& request, const LiveBoard& board, Nanos at) {
    std::optional<uint32_t> place;
    std::optional<double> left;
    const std::string_view phase = request.phase();
    if (!request.ended && request.output_tokens == 0) {
        for (const LiveRequest::Stream& stream : request.streams) {
            const auto found = std::ranges::find(board.line(), stream.seq, &Forecast::seq);
            if (found == board.line().end()) continue;
            if (phase == "queue") place = std::min(place.value_or(found->place), found->place);
            if (found->first_token > 0) left = std::max(0.0, seconds(found->first_token_at() - at));
        }
    }
    number_or_null(json, "queue_place", place);
    number_or_null(json, "seconds_left", left);
}

void write_request(JsonWriter& json, const LiveRequest& request, const LiveBoard& board, Nanos at) {
    const LiveFacts& facts = request.facts;
    json.object();
    json.key("id").text(facts.id).key("model").text(facts.model).key("class").text(name(facts.priority));
    json.key("client");
    facts.client.empty() ? json.null() : json.text(facts.client);
    json.key("route").text(facts.route).key("streams").boolean(facts.streams);
    json.key("cold").boolean(request.cold);
    json.key("phase").text(request.phase()).key("since_ns").number(request.phase_since);
    json.key("accepted_ns").number(facts.accepted);
    json.key("elapsed_ns").number(request.tally.until() - facts.accepted);
    write_spent(json.key("spent_ns"), request.tally.spent());
    json.key("prompt_tokens").number(facts.prompt_tokens).key("cached_tokens").number(request.cached_tokens);
    json.key("computed_tokens").number(request.computed_tokens).key("output_tokens").number(request.output_tokens);
    json.key("max_output_tokens").number(facts.max_output_tokens);
    write_forecast(json, request, board, at);
    write_holders_of(json.key("held_up_by"), request);
    std::optional<Nanos> ttft;
    std::optional<double> writing, reading;
    if (request.first_flush) {
        ttft = *request.first_flush - facts.accepted;
        writing = rate(request.tokens_flushed_after_first, *request.last_flush - *request.first_flush);
    }
    if (request.first_step)
        reading =
            rate(request.computed_tokens, request.prefill_end.value_or(request.tally.until()) - *request.first_step);
    number_or_null(json, "ttft_ns", ttft);
    number_or_null(json, "last_gap_ns", request.last_gap);
    number_or_null(json, "max_gap_ns", request.max_gap);
    number_or_null(json, "output_tokens_per_second", writing);
    number_or_null(json, "prompt_tokens_per_second", reading);
    json.key("ended").boolean(request.ended.has_value());
    json.key("outcome");
    request.outcome == nullptr ? json.null() : json.text(request.outcome);
    json.close();
}

void write_kind(JsonWriter& json, const StepsOfAKind& kind) {
    json.object().key("ns").number(kind.ns).key("operations").number(kind.work.operations);
    json.key("bytes").number(kind.work.bytes).close();
}

void write_gaps(JsonWriter& json, std::vector<Nanos> gaps) {
    if (gaps.empty()) return void(json.null());
    std::ranges::sort(gaps);
    json.object().key("count").number(uint64_t{gaps.size()});
    json.key("p50").number(gaps[(gaps.size() - 1) / 2]).key("max").number(gaps.back()).close();
}

void write_second(JsonWriter& json, const Second& second, const Snapshot& snapshot) {
    const Nanos begin = second.number * kNanosPerSecond;
    std::optional<double> arithmetic, bandwidth;
    if (snapshot.limits) {
        arithmetic =
            (second.prefill.work.operations + second.decode.work.operations) / snapshot.limits->operations_per_second;
        bandwidth = (second.prefill.work.bytes + second.decode.work.bytes) / snapshot.limits->bytes_per_second;
    }
    json.object();
    json.key("at_ns").number(begin);
    json.key("unix_ms").number(snapshot.unix_ms - (snapshot.at - begin) / kNanosPerMilli);
    json.key("busy").number(seconds(second.busy())).key("steps").number(second.steps);
    number_or_null(json, "arithmetic", arithmetic);
    number_or_null(json, "bandwidth", bandwidth);
    json.key("prefill_tokens").number(second.prefill_tokens).key("output_tokens").number(second.output_tokens);
    write_kind(json.key("prefill"), second.prefill);
    write_kind(json.key("decode"), second.decode);
    write_gaps(json.key("gaps"), second.gaps);
    json.key("stalls").number(second.stalls);
    json.close();
}

}  // namespace

void write_now(JsonWriter& json, LiveBoard& board, const Snapshot& snapshot) {
    const std::list<LiveRequest>& requests = board.requests(snapshot.at);
    uint32_t running = 0, waiting = 0;
    for (const LiveRequest& request : requests) {
        const std::string_view phase = request.phase();
        if (!request.ended) (phase == "queue" || phase == "load" ? waiting : running)++;
    }
    json.object();
    json.key("at_ns").number(snapshot.at).key("unix_ms").number(snapshot.unix_ms);
    json.key("ready").boolean(snapshot.ready).key("draining").boolean(snapshot.draining);
    json.key("running").number(running).key("waiting").number(waiting);
    json.key("pages").object().key("used_bytes").number(snapshot.occupancy.bytes_used);
    json.key("cached_bytes").number(snapshot.occupancy.bytes_cached);
    json.key("budget_bytes").number(snapshot.occupancy.bytes_total).close();
    json.key("gap_promise_ns");
    snapshot.occupancy.gap_promise > 0 ? json.number(snapshot.occupancy.gap_promise * kNanosPerMicro) : json.null();
    json.key("stall_limit_ns").number(snapshot.stall_limit);
    json.key("requests").array();
    for (const LiveRequest& request : requests) write_request(json, request, board, snapshot.at);
    json.close();
    json.key("seconds").array();
    for (int64_t number = snapshot.seconds_from; number <= Seconds::newest_told(snapshot.at); ++number)
        write_second(json, board.seconds().of(number), snapshot);
    json.close();
    json.key("limits");
    if (snapshot.limits) {
        json.object().key("operations_per_second").number(snapshot.limits->operations_per_second);
        json.key("bytes_per_second").number(snapshot.limits->bytes_per_second).close();
    } else {
        json.null();
    }
    json.close();
}

uint64_t write_steps(std::string& out, const LiveBoard& board, uint64_t after, size_t most) {
    const std::deque<LiveStep>& steps = board.steps();
    if (steps.empty() || steps.back().number <= after) return after;
    auto from = std::ranges::upper_bound(steps, after, {}, &LiveStep::number);
    const uint64_t newest = steps.back().number;
    const auto there = static_cast<size_t>(steps.end() - from);
    if (there > most) from += static_cast<std::ptrdiff_t>(there - most);
    const uint64_t shown = static_cast<uint64_t>(steps.end() - from);
    JsonWriter json(out);
    json.object().key("skipped").number(newest - after - shown).key("steps").array();
    for (; from != steps.end(); ++from) {
        json.object().key("id").number(from->number);
        json.key("begin_ns").number(from->begin).key("end_ns").number(from->end);
        json.key("rows").object();
        for (uint32_t phase = 0; phase < kPhases; ++phase)
            json.key(name(static_cast<Phase>(phase))).number(from->rows[phase]);
        json.close();
        json.key("shares").array();
        for (const LiveStep::Share& share : from->shares) {
            json.object().key("id").text(share.id).key("phase").text(name(share.phase));
            json.key("rows").number(share.rows).close();
        }
        json.close().close();
    }
    json.close().close();
    return newest;
}

}  // namespace cadans::serve
