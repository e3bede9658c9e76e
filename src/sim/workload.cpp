#include "sim/workload.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "sim/draws.h"

namespace cadans::sim {

Nanos Workload::span() const noexcept { return arrivals.size() < 2 ? 0 : arrivals.back().at - arrivals.front().at; }

double Workload::rate() const noexcept {
    const Nanos length = span();
    return length <= 0 ? 0.0 : static_cast<double>(arrivals.size() - 1) * 1e9 / static_cast<double>(length);
}

void Workload::scale_to(double rate, uint64_t seed) {
    if (!timed || span() == 0) {
        Draws draws(seed);
        double at = 0;
        for (Arrival& one : arrivals) {
            one.at = std::llround(std::min(at, kLongestSeconds) * 1e9);
            at += draws.exponential(1 / rate);
        }
        timed = true;
        return;
    }
    const double factor = this->rate() / rate;
    const Nanos first = arrivals.front().at;
    for (Arrival& one : arrivals) one.at = std::llround(static_cast<double>(one.at - first) * factor);
}

void Workload::cut(size_t count) { arrivals.resize(std::min(count, arrivals.size())); }

std::vector<TokenId> Workload::prompt_of(size_t row) const {
    const Arrival& one = arrivals[row];
    if (!one.tokens.empty()) return one.tokens;
    std::vector<TokenId> tokens(one.prompt);
    for (uint32_t p = 0; p < one.prompt; p++) {
        const uint32_t block = p / block_tokens;
        // Blocks beyond those that a trace names, and prompts without any, are like no other.
        const uint64_t origin = block < one.blocks.size() ? mix64(one.blocks[block]) : mix64(~row) ^ block;
        tokens[p] = TokenId{static_cast<uint32_t>(mix64(origin + p) % kVocabulary)};
    }
    return tokens;
}

}  // namespace cadans::sim
