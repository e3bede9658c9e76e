#include "runtime/tape.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/house_json.h"
#include "runtime/plan_digest.h"

namespace cadans::runtime {
namespace {

template <class... Parts>
void append(std::string& to, fmt::format_string<Parts...> form, Parts&&... parts) {
    fmt::format_to(std::back_inserter(to), form, std::forward<Parts>(parts)...);
}

/// Ends its sequence in this step with nothing that a player of the tape could see by the tokens.
bool ends_badly(const ItemResult& item) {
    return item.failed || item.stuck || (item.complete && item.accepted_begin == item.accepted_end);
}

}  // namespace

Result<std::unique_ptr<Tape>> Tape::open(const std::string& path, const sched::House& house, Options options) {
    const int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    std::FILE* file = fd < 0 ? nullptr : ::fdopen(fd, "w");
    if (file == nullptr) {
        const ErrorCode code = errno == EACCES || errno == EPERM ? ErrorCode::denied : ErrorCode::io;
        return Error{code, fmt::format("{} cannot be written: {}", path, std::strerror(errno)), path};
    }
    const nlohmann::ordered_json head = {
        {"cadans", "tape"}, {"version", kVersion}, {"policy", options.policy}, {"house", house_to_json(house)}};
    std::unique_ptr<Tape> tape(new Tape(file, std::move(options)));
    tape->filling_ = head.dump() + "\n";
    return tape;
}

Tape::Tape(std::FILE* file, Options options)
    : file_(file), options_(std::move(options)), pseudonyms_(options_.key), writer_([this] { write_out(); }) {}

Tape::~Tape() {
    if (running()) finish("closed");
    state_.wait(handed);
    writing_.swap(filling_);
    state_ = closing;
    state_.notify_one();
    writer_.join();
    std::fclose(file_);
}

void Tape::heard(Nanos now, const StepResult* result, std::span<const Command> commands) {
    if (!running()) return;
    now_ = now;
    append(filling_, "{{\"t\":{}", now);
    if (result != nullptr) write_result(*result);
    if (commands.empty()) return;
    filling_ += ",\"c\":[";
    for (const Command& command : commands) {
        if (&command != commands.data()) filling_ += ',';
        switch (command.kind) {
            case Command::Kind::admit:
                write_admission(command.request, command.since);
                break;
            case Command::Kind::cancel:
                append(filling_, "{{\"cancel\":{}}}", index(command.seq));
                break;
            case Command::Kind::cancel_all:
                filling_ += "{\"cancel_all\":true}";
                break;
            case Command::Kind::learn:
                append(filling_, "{{\"learn\":{},\"cost\":{}}}", index(command.model),
                       cost_to_json(command.cost).dump());
                break;
            case Command::Kind::forget:
                append(filling_, "{{\"forget\":{}}}", index(command.model));
                break;
        }
    }
    filling_ += ']';
}

void Tape::write_admission(const SequenceRequest& request, Nanos since) {
    const Speculation how = request.speculation == Speculation::as_served ? options_.usual : request.speculation;
    append(filling_,
           "{{\"admit\":{},\"since\":{},\"request\":{},\"model\":{},\"new\":{},\"ends\":{},\"score\":{},\"cache\":{},"
           "\"guessed\":{},"
           "\"priority\":{}"
           ",\"scope\":{},"
           "\"prompt\":[",
           index(request.seq), since, index(request.request), index(request.model), request.max_new_tokens,
           !request.end_tokens.empty() || request.constraint != nullptr, request.score_prompt, request.cache_prompt,
           static_cast<uint32_t>(how), static_cast<uint32_t>(request.priority), pseudonyms_.of(request.scope));
    Inside& inside = inside_[request.seq];
    inside.end_tokens = request.end_tokens;
    bool first = true;
    for (const TokenId token : request.prompt) {
        inside.history = pseudonyms_.next(inside.history, token);
        append(filling_, "{}{}", first ? "" : ",", Pseudonyms::name(inside.history));
        first = false;
    }
    filling_ += "]}";
}

void Tape::write_result(const StepResult& result) {
    append(filling_, ",\"r\":{{\"id\":{},\"b\":{},\"e\":{},", index(result.id), result.begin, result.end);
    if (result.drafting > 0) append(filling_, "\"g\":{},", result.drafting);
    filling_ += "\"i\":[";
    for (const ItemResult& item : result.items) {
        append(filling_, "{}[{},{},{},{}", &item == result.items.data() ? "" : ",", index(item.seq), item.computed,
               item.scores_end - item.scores_begin, ends_badly(item));
        const auto inside = inside_.find(item.seq);
        for (uint32_t i = item.accepted_begin; i < item.accepted_end; i++) {
            uint32_t name = 1;
            if (inside != inside_.end()) {
                const TokenId token = result.accepted[i].token;
                const auto& ends = inside->second.end_tokens;
                inside->second.history = pseudonyms_.next(inside->second.history, token);
                // What completes a constraint ends the answer as an end token does.
                const bool last = item.complete && i + 1 == item.accepted_end;
                const bool end = last || std::binary_search(ends.begin(), ends.end(), token);
                name = end ? 0 : Pseudonyms::name(inside->second.history);
            }
            append(filling_, ",{}", name);
        }
        filling_ += ']';
    }
    filling_ += "]}";
}

/// Their names are those that the tokens will have in the results, if they come.
void Tape::write_offers(std::span<const DraftOffer> offers) {
    if (offers.empty()) return;
    filling_ += ",\"d\":[";
    for (const DraftOffer& offer : offers) {
        append(filling_, "{}[{},{}", &offer == offers.data() ? "" : ",", index(offer.seq), offer.match);
        const auto inside = inside_.find(offer.seq);
        uint64_t history = inside == inside_.end() ? Pseudonyms::kStart : inside->second.history;
        for (const TokenId token : offer.tokens) {
            history = pseudonyms_.next(history, token);
            append(filling_, ",{}", Pseudonyms::name(history));
        }
        filling_ += ']';
    }
    filling_ += ']';
}

void Tape::planned(const StepPlan* plan, std::span<const Event> events) {
    if (!running()) return;
    for (const Event& event : events)
        if (event.kind == EventKind::finished) inside_.erase(event.seq);
    if (plan != nullptr) write_offers(plan->offers);
    if (plan != nullptr) append(filling_, ",\"p\":{}", plan_digest(*plan));
    filling_ += "}\n";
    if (bytes_ + filling_.size() > options_.most_bytes) return finish("full");
    hand_over(now_);
}

/// Gives what is filled to the writer when it is worth it and the writer is free.
void Tape::hand_over(Nanos now) {
    if (failed_) return finish("failed");
    if (filling_.size() < kHandOver && now - handed_at_ < kNanosPerSecond) return;
    if (state_ == idle) {
        bytes_ += filling_.size();
        writing_.clear();
        writing_.swap(filling_);
        handed_at_ = now;
        state_ = handed;
        state_.notify_one();
    } else if (filling_.size() > kMostUnwritten) {
        finish("slow");
    }
}

void Tape::finish(std::string_view why) {
    append(filling_, "{{\"end\":\"{}\"}}\n", why);
    inside_.clear();
    running_ = false;
    if (why != "closed") tell(why);
}

void Tape::tell(std::string_view why) {
    if (!told_.exchange(true) && options_.on_end) options_.on_end(why);
}

void Tape::write_out() {
    while (true) {
        state_.wait(idle);
        const uint32_t state = state_;
        if (!failed_ && std::fwrite(writing_.data(), 1, writing_.size(), file_) != writing_.size()) failed_ = true;
        if (std::fflush(file_) != 0) failed_ = true;
        if (failed_) tell("failed");
        if (state == closing) return;
        state_ = idle;
        state_.notify_one();
    }
}

}  // namespace cadans::runtime
