#include "load/load_report.h"

#include <algorithm>
#include <cmath>

namespace cadans::load {
namespace {

constexpr uint32_t kFewestPieces = 3;  ///< fewer gaps than two tell when it was sent, not how fast it came

std::optional<LoadReport::Rates> rates_of(std::vector<double> rates) {
    if (rates.empty()) return std::nullopt;
    std::ranges::sort(rates);
    const auto at = [&](size_t percent) { return rates[std::max<size_t>((rates.size() * percent + 99) / 100, 1) - 1]; };
    return LoadReport::Rates{at(50), at(10), at(1), rates.front()};
}

/// Tokens after the first piece ÷ (last piece − first piece). No server says how many tokens a piece has: they are
/// taken to be as its bytes are. None where there are fewer than kFewestPieces.
std::optional<double> rate_of(const Answer& answer) {
    if (answer.pieces < kFewestPieces || *answer.last <= *answer.first) return std::nullopt;
    const double after = static_cast<double>(answer.bytes - answer.first_bytes) / static_cast<double>(answer.bytes);
    return answer.output_tokens * after * 1e9 / static_cast<double>(*answer.last - *answer.first);
}

}  // namespace

LoadReport report_of(const Played& played, Nanos stall) {
    LoadReport out;
    std::vector<Nanos> ttft, gaps, prompt, late;
    std::vector<double> rates;
    uint64_t stalls = 0;
    for (size_t row = 0; row < played.answers.size(); row++) {
        const Answer& answer = played.answers[row];
        out.requests++;
        if (answer.sent != 0) late.push_back(played.late[row]);
        if (!answer.error.empty()) {
            (answer.refused() ? out.refused : out.failed)++;
            out.errors[answer.error]++;
            continue;
        }
        out.finished++;
        out.prompt_tokens += answer.prompt_tokens;
        out.output_tokens += answer.output_tokens;
        if (answer.first) ttft.push_back(*answer.first - answer.sent);
        gaps.insert(gaps.end(), answer.gaps.begin(), answer.gaps.end());
        stalls += static_cast<uint64_t>(std::ranges::count_if(answer.gaps, [&](Nanos gap) { return gap > stall; }));
        if (answer.prompt_ms) prompt.push_back(std::llround(*answer.prompt_ms * 1e6));
        if (const auto rate = rate_of(answer)) rates.push_back(*rate);
    }
    out.ttft = sim::spread_of(ttft);
    out.gap = sim::spread_of(gaps);
    out.prompt = sim::spread_of(prompt);
    out.late = sim::spread_of(late);
    out.ttft_curve = sim::curve_of(ttft);
    out.gap_curve = sim::curve_of(gaps);
    out.output_tokens_per_second = rates_of(std::move(rates));
    if (out.output_tokens > 0)
        out.stalls_per_1000 = 1000.0 * static_cast<double>(stalls) / static_cast<double>(out.output_tokens);
    if (played.span > 0) {
        const double seconds = static_cast<double>(played.span) / kNanosPerSecond;
        out.finished_per_second = static_cast<double>(out.finished) / seconds;
        out.tokens_per_second = static_cast<double>(out.output_tokens) / seconds;
    }
    return out;
}

}  // namespace cadans::load
