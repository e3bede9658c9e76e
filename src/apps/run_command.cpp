// cadans run: a chat in the terminal, with every phase shown.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/commands.h"
#include "apps/engine_room.h"
#include "apps/progress.h"
#include "apps/settings.h"
#include "apps/stderr_text.h"
#include "base/clock.h"
#include "base/random.h"
#include "draft/drafters.h"
#include "metrics/figures.h"
#include "runtime/fanout.h"
#include "runtime/inbox.h"
#include "runtime/loop.h"
#include "sched/scheduler.h"
#include "sched/static_chunk.h"
#include "text/detokenizer.h"

namespace cadans::apps {
namespace {

using Json = nlohmann::ordered_json;

volatile std::sig_atomic_t interrupted = 0;
volatile std::sig_atomic_t at_prompt = 0;  ///< waiting for a line: nothing is under way that had to be ended first

void on_interrupt(int) {
    interrupted = 1;
    if (at_prompt == 0) return;
    (void)!::write(STDERR_FILENO, "\n", 1);
    std::_Exit(kInterrupted);
}

struct Answer {
    std::string text;
    bool interrupted = false;
    metrics::Figures figures;
};

/// One request after the other through the same parts as the server's, turned by this thread.
class Conversation {
  public:
    Conversation(EngineRoom& room, const RunSettings& settings, Nanos load_time)
        : room_(room),
          settings_(settings),
          load_time_(load_time),
          inbox_(room.house, 1),
          fanout_({}),
          scheduler_(room.house, sched::static_chunk(), &drafters_),
          loop_(inbox_, scheduler_, *room.executor, fanout_) {
        if (!settings.system.empty()) messages_.push_back({{"role", "system"}, {"content", settings.system}});
    }

    Result<Answer> ask(const std::string& question) {
        metrics::RequestRecord record(RequestId{++requests_}, steady_now());
        record.parsed(steady_now());
        messages_.push_back({{"role", "user"}, {"content", question}});
        auto request = request_for(question);
        if (!request) {
            messages_.erase(messages_.size() - 1);
            return std::move(request).error();
        }
        record.tokenized(steady_now());
        auto place = inbox_.reserve(1, steady_now());
        if (!place) return std::move(place).error();
        request->seq = inbox_.new_seq();
        record.queued(request->seq, static_cast<uint32_t>(request->prompt.size()), true, steady_now());
        const SeqId seq = request->seq;
        if (Status sent = inbox_.submit(*place, *std::move(request)); !sent) return std::move(sent).error();
        Answer answer = listen(seq, record);
        messages_.push_back({{"role", "assistant"}, {"content", answer.text}});
        return answer;
    }

    void print_strip(const metrics::Figures& f) const {
        const auto rate = [](const std::optional<double>& r) {
            return r ? fmt::format(" ({:.1f}/s)", *r) : std::string();
        };
        std::string strip = fmt::format("load {}", f.cold ? format_duration(load_time_) : "0 (warm)");
        if (f.prompt_ns)
            strip += fmt::format(" │ read {} tokens in {}{}", f.computed_tokens, format_duration(*f.prompt_ns),
                                 rate(f.prompt_tokens_per_second));
        if (f.ttft_ns) strip += fmt::format(" │ first word after {}", format_duration(*f.ttft_ns));
        strip += fmt::format(" │ wrote {} tokens{}", f.output_tokens, rate(f.output_tokens_per_second));
        if (f.drafted > 0) strip += fmt::format(", {} of {} guesses right", f.accepted, f.drafted);
        if (f.gap_ns) strip += fmt::format(" │ largest gap {}", format_duration(f.gap_ns->max));
        const bool colour = ::isatty(STDERR_FILENO) == 1;
        to_stderr("{}{}{}\n", colour ? "\033[2m" : "", strip, colour ? "\033[0m" : "");
    }

  private:
    const KnownModel& loaded() const { return room_.models.front(); }

    Result<SequenceRequest> request_for(const std::string& question) {
        const text::Vocabulary& words = loaded().tokenizer->vocabulary();
        SequenceRequest request;
        if (loaded().chat_template) {
            text::RenderOptions options;
            options.now_unix_seconds = unix_seconds();
            if (words.bos()) options.bos_token = words.spelling(*words.bos());
            if (words.eos()) options.eos_token = words.spelling(*words.eos());
            auto rendered = loaded().chat_template->render(messages_, options);
            if (!rendered) return std::move(rendered).error();
            request.prompt =
                loaded().tokenizer->encode(*rendered, loaded().tokenizer->markers_of(loaded().chat_template->source()));
        } else {
            request.prompt = loaded().tokenizer->encode(question, {.add_special = true, .parse_special = true});
        }
        const uint32_t context = loaded().card.context_tokens;
        if (request.prompt.size() >= context)
            return Error{
                ErrorCode::too_long,
                fmt::format(
                    "the conversation is {} tokens long, and {} are allowed; start a new one or raise --context",
                    request.prompt.size(), context)};
        const auto room_left = context - static_cast<uint32_t>(request.prompt.size());
        request.model = loaded().card.model;
        request.max_new_tokens = settings_.max_tokens == 0 ? room_left : std::min(settings_.max_tokens, room_left);
        const auto ends = words.end_of_generation();
        request.end_tokens.assign(ends.begin(), ends.end());
        request.sampling.temperature = settings_.temperature;
        request.sampling.seed = fresh_seed();
        return request;
    }

    Answer listen(SeqId seq, metrics::RequestRecord& record) {
        Answer answer;
        text::Detokenizer words(loaded().tokenizer->vocabulary(), {.skip_control = true, .at_start = true});
        Progress bar("reading");
        std::vector<Event> events;
        const Nanos begin = steady_now();
        uint32_t unsent = 0;
        const auto say = [&](const std::string& piece, uint32_t tokens) {
            unsent += tokens;
            if (piece.empty()) return;
            bar.clear();
            answer.text += piece;
            if (!settings_.json) {
                std::cout << piece << std::flush;
            }
            record.flushed(seq, unsent, steady_now());
            unsent = 0;
        };
        for (bool finished = false; !finished;) {
            const bool unheard = !std::cout.good();  // nobody reads on: run ... | head
            if ((interrupted != 0 || unheard) && !answer.interrupted) {
                answer.interrupted = true;
                inbox_.cancel(seq);
            }
            loop_.turn(steady_now());
            fanout_.take(events);
            for (const Event& event : events) {
                record.on(event);
                if (event.kind == EventKind::step_share && event.phase == Phase::prefill)
                    show_reading(bar, event, record, begin);
                if (event.kind == EventKind::token) say(words.push(event.score.token), 1);
                if (event.kind == EventKind::finished) {
                    finished = true;
                    say(words.finish(), 0);
                    record.done(metrics::outcome_of(event.reason), steady_now());
                }
            }
        }
        interrupted = 0;
        answer.figures = metrics::figures_of(record);
        answer.figures.cold = requests_ == 1;
        return answer;
    }

    void show_reading(Progress& bar, const Event& event, const metrics::RequestRecord& record, Nanos begin) const {
        const uint32_t total = record.streams().front().prompt_tokens;
        const double left =
            static_cast<double>(event.time - begin) / 1e9 * (total - event.position) / std::max(event.position, 1U);
        if (event.position < total)
            bar.show(event.position, total, fmt::format("{} of {} tokens, {:.1f} s left", event.position, total, left));
    }

    EngineRoom& room_;
    const RunSettings& settings_;
    Nanos load_time_;
    runtime::Inbox inbox_;
    runtime::Fanout fanout_;
    draft::Drafters drafters_{Speculation::automatic};
    sched::Scheduler scheduler_;
    runtime::Loop loop_;
    Json messages_ = Json::array();
    uint64_t requests_ = 0;
};

void print_json(const RunSettings& settings, const Answer& answer, Nanos load_time) {
    const metrics::Figures& f = answer.figures;
    const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
    Json gaps = nullptr;
    if (f.gap_ns) gaps = {{"p50", f.gap_ns->p50}, {"p99", f.gap_ns->p99}, {"max", f.gap_ns->max}};
    const Json out = {{"model", settings.model},
                      {"text", answer.text},
                      {"interrupted", answer.interrupted},
                      {"load_ns", load_time},
                      {"prompt_tokens", f.prompt_tokens},
                      {"prompt_ns", or_null(f.prompt_ns)},
                      {"prompt_tokens_per_second", or_null(f.prompt_tokens_per_second)},
                      {"ttft_ns", or_null(f.ttft_ns)},
                      {"output_tokens", f.output_tokens},
                      {"output_tokens_per_second", or_null(f.output_tokens_per_second)},
                      {"speculation", {{"drafted", f.drafted}, {"accepted", f.accepted}}},
                      {"gap_ns", gaps},
                      {"total_ns", f.total_ns}};
    std::cout << out.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

int talk(Conversation& conversation) {
    to_stderr("Type a message; Ctrl-C stops an answer, Ctrl-D ends.\n");
    for (std::string line;;) {
        to_stderr("\n> ");
        std::fflush(stderr);
        at_prompt = 1;
        if (interrupted != 0) return kInterrupted;  // it came just before, when nobody waited yet
        const bool given = static_cast<bool>(std::getline(std::cin, line));
        at_prompt = 0;
        if (!given) {
            to_stderr("\n");
            return 0;
        }
        if (line.empty()) continue;
        auto answer = conversation.ask(line);
        if (!answer) {
            to_stderr("cadans: {}\n", answer.error().message);
            continue;
        }
        std::cout << std::endl;
        conversation.print_strip(answer->figures);
    }
}

}  // namespace

int run_command(RunSettings settings) {
    settings.compute.models = {settings.model};
    settings.compute.max_running = 1;
    std::signal(SIGINT, on_interrupt);
    const Nanos begin = steady_now();
    Progress bar("loading");
    auto room = EngineRoom::open(settings.compute, [&](const std::string& name, uint64_t done, uint64_t total) {
        bar.show(done, total, name);
        return interrupted == 0;
    });
    bar.clear();
    if (!room) {
        if (interrupted != 0) return kInterrupted;
        return fail(room.error());
    }
    const Nanos load_time = steady_now() - begin;
    if (!(*room)->models.front().chat_template)
        to_stderr("This model has no chat template: it continues your text. --chat-template FILE gives it one.\n");
    Conversation conversation(**room, settings, load_time);
    if (settings.prompt.empty()) return talk(conversation);
    auto answer = conversation.ask(settings.prompt);
    if (!answer) return fail(answer.error());
    if (settings.json) {
        print_json(settings, *answer, load_time);
    } else {
        std::cout << std::endl;
        conversation.print_strip(answer->figures);
    }
    return answer->interrupted ? kInterrupted : 0;
}

}  // namespace cadans::apps
