// cadans top: who is being served now, in a terminal.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/commands.h"
#include "apps/server_address.h"
#include "apps/stderr_text.h"
#include "base/nesting.h"
#include "base/units.h"

namespace cadans::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLaneCells = 24;
constexpr size_t kIdShown = 14;

/// A part of a lane: its field in spent_ns, its letter on paper, its colour on a terminal.
struct LanePart {
    const char* field;
    char letter;
    const char* colour;
};

constexpr std::array kLane = {
    LanePart{"load", 'L', "45"},          LanePart{"queue", 'q', "47;30"},
    LanePart{"own_prefill", 'P', "44"},   LanePart{"others_prefill", 'p', "41"},
    LanePart{"own_decode", 'D', "42;30"}, LanePart{"others_decode", 'd', "43;30"},
    LanePart{"preempted", 'x', "41"},     LanePart{"other", '.', "100"},
};

/// A rate or a span that may not be known.
std::string rate(const Json& object, const char* key) {
    const double value = number_at(object, key);
    return value > 0 ? fmt::format("{:.1f}", value) : "-";
}
std::string span(const Json& object, const char* key) {
    const double value = number_at(object, key);
    return value > 0 ? format_duration(std::llround(value)) : "-";
}

/// Cells of a lane divided like its parts: largest remainders get what is left.
std::string lane(const Json& spent, bool colours) {
    std::array<double, kLane.size()> share{};
    double total = 0;
    for (size_t i = 0; i < kLane.size(); i++) total += share[i] = number_at(spent, kLane[i].field);
    if (total <= 0) return std::string(kLaneCells, ' ');
    std::array<size_t, kLane.size()> cells{};
    size_t left = kLaneCells;
    for (size_t i = 0; i < kLane.size(); i++) {
        share[i] *= kLaneCells / total;
        left -= cells[i] = static_cast<size_t>(share[i]);
    }
    for (; left > 0; left--) {
        size_t most = 0;
        for (size_t i = 1; i < kLane.size(); i++)
            if (share[i] - static_cast<double>(cells[i]) > share[most] - static_cast<double>(cells[most])) most = i;
        cells[most]++;
    }
    std::string out;
    for (size_t i = 0; i < kLane.size(); i++) {
        if (cells[i] == 0) continue;
        const std::string bar(cells[i], kLane[i].letter);
        out += colours ? fmt::format("\x1b[{}m{}\x1b[0m", kLane[i].colour, bar) : bar;
    }
    return out;
}

std::string percent(const Json& second, const char* key) {
    const std::optional<double> share = maybe_number_at(second, key);
    return share ? fmt::format("{:.0f} %", 100 * *share) : "-";
}

std::string head(const Json& now, const Json& second) {
    const Json& gaps = object_at(second, "gaps");
    std::string out = fmt::format("{} running, {} waiting", number_at(now, "running"), number_at(now, "waiting"));
    out += fmt::format("   prompts {:.0f} tokens/s, answers {:.0f} tokens/s", number_at(second, "prefill_tokens"),
                       number_at(second, "output_tokens"));
    out += fmt::format("\nbusy {}, arithmetic {}, memory bandwidth {}", percent(second, "busy"),
                       percent(second, "arithmetic"), percent(second, "bandwidth"));
    out += fmt::format("   gaps felt: half within {}, longest {}; {:.0f} stalls", span(gaps, "p50"), span(gaps, "max"),
                       number_at(second, "stalls"));
    const Json& pages = object_at(now, "pages");
    out += fmt::format("\npages {} used, {} kept, of {}",
                       format_size(static_cast<uint64_t>(number_at(pages, "used_bytes"))),
                       format_size(static_cast<uint64_t>(number_at(pages, "cached_bytes"))),
                       format_size(static_cast<uint64_t>(number_at(pages, "budget_bytes"))));
    return out;
}

std::string line_of(const Json& request, bool colours) {
    const std::string id = text_at(request, "id");
    const std::string shown = id.size() > kIdShown ? id.substr(id.size() - kIdShown) : id;
    std::string held;
    if (const Json& holders = list_at(request, "held_up_by"); !holders.empty()) {
        const std::string who = text_at(holders.front(), "id");
        held = fmt::format("{} by {} ({})", span(holders.front(), "ns"),
                           who.size() > kIdShown ? who.substr(who.size() - kIdShown) : who,
                           text_at(holders.front(), "phase"));
    }
    const bool ended = request.is_object() && request.contains("ended") && request["ended"] == true;
    const std::string phase = ended ? text_at(request, "outcome") : text_at(request, "phase");
    return fmt::format(
        "{:14} {:12.12} {:11} {:9} {} {:>11} {:>7} {:>8} {:>8} {:>8}  {}", shown, text_at(request, "model"),
        text_at(request, "class"), phase, lane(object_at(request, "spent_ns"), colours),
        fmt::format("{:.0f}/{:.0f}", number_at(request, "computed_tokens") + number_at(request, "cached_tokens"),
                    number_at(request, "prompt_tokens")),
        number_at(request, "output_tokens"), span(request, "ttft_ns"), span(request, "max_gap_ns"),
        rate(request, "output_tokens_per_second"), held);
}

/// `lines` and `columns` 0: as many as there are.
std::string view(const Json& now, const Json& second, bool colours, size_t lines) {
    std::string out = head(now, second) + "\n\n";
    out += fmt::format("{:14} {:12} {:11} {:9} {:24} {:>11} {:>7} {:>8} {:>8} {:>8}  {}\n", "id", "model", "class",
                       "phase", "where its time went", "prompt", "answer", "first", "max gap", "tokens/s", "held up");
    size_t left = lines > 8 ? lines - 8 : SIZE_MAX;
    const Json& requests = list_at(now, "requests");
    for (const Json& request : requests) {
        if (left-- == 0) break;
        out += line_of(request, colours) + "\n";
    }
    if (requests.empty()) out += "nobody is being served\n";
    out +=
        "\nL load  q queue  P reading its prompt  p others' prompts  D writing its answer  d others' answers  x set "
        "aside  . other\n";
    return out;
}

size_t terminal_lines() {
    winsize size{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

bool is_now(const Json& document) {
    return document.is_object() && document.contains("requests") && document["requests"].is_array();
}

int once(const TopSettings& s) {
    const auto now = ask(s.server, "/cadans/v1/now");
    if (!now) return fail(now.error());
    if (!is_now(*now)) return fail(strange(s.server));
    if (s.json) {
        std::cout << now->dump(2) << '\n';
        return 0;
    }
    const Json& seconds = list_at(*now, "seconds");
    fmt::print("{}", view(*now, seconds.empty() ? Json::object() : seconds.back(), false, 0));
    return 0;
}

}  // namespace

int top_command(const TopSettings& s) {
    if (s.json || ::isatty(STDOUT_FILENO) == 0) return once(s);
    const auto url = client::parse_url(s.server.url);
    if (!url) return fail(url.error());
    bool wanted = false, any = false;
    Json second = Json::object();
    const auto reply =
        client::call_lines(*url, request_to(s.server, "/cadans/v1/now/stream"), [&](std::string_view line) {
            if (line.starts_with("event: ")) wanted = line == "event: now";
            if (!wanted || !line.starts_with("data: ") || nesting_of(line) > kMostNesting) return true;
            const Json now = Json::parse(line.substr(6), nullptr, false);
            if (!is_now(now)) return true;
            any = true;
            if (const Json& seconds = list_at(now, "seconds"); !seconds.empty()) second = seconds.back();
            fmt::print("\x1b[H\x1b[J{}", view(now, second, true, terminal_lines()));
            return std::fflush(stdout) == 0;
        });
    if (!reply) return fail(reply.error());
    if (reply->status != 200) return fail(error_of(*reply));
    if (!any) return fail(strange(s.server));
    fmt::print("the server has ended\n");
    return 0;
}

}  // namespace cadans::apps
