#include "load/prompt_text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/random.h"

namespace cadans::load {
namespace {

constexpr std::array kWords = {
    "time",   "year",   "people",  "way",     "day",     "thing",  "woman", "life",  "child",  "world", "school",
    "state",  "family", "group",   "country", "problem", "hand",   "part",  "place", "case",   "week",  "company",
    "system", "work",   "number",  "night",   "point",   "home",   "water", "room",  "mother", "area",  "money",
    "story",  "fact",   "month",   "right",   "study",   "book",   "eye",   "job",   "word",   "side",  "kind",
    "head",   "house",  "service", "friend",  "power",   "hour",   "game",  "line",  "end",    "law",   "car",
    "city",   "name",   "team",    "minute",  "idea",    "body",   "back",  "face",  "level",  "door",  "art",
    "war",    "party",  "result",  "change",  "reason",  "moment", "air",   "force", "teacher"};

/// `count` words of a block that is named by a number.
void append_words(std::string& out, uint64_t block, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (!out.empty()) out += ' ';
        out += kWords[mix64(block * 0x9E3779B97F4A7C15ULL + i) % kWords.size()];
    }
}

uint64_t words_for(uint32_t tokens, double tokens_per_word) {
    return std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(tokens / tokens_per_word)));
}

}  // namespace

std::string prompt_text(const sim::Workload& workload, size_t row, double tokens_per_word, uint64_t seed) {
    const sim::Arrival& arrival = workload.arrivals[row];
    std::string out;
    if (arrival.blocks.empty()) {
        append_words(out, mix64(seed ^ mix64(row)), words_for(arrival.prompt, tokens_per_word));
        return out;
    }
    uint32_t left = arrival.prompt;
    for (size_t i = 0; i < arrival.blocks.size() && left > 0; i++) {
        const bool last = i + 1 == arrival.blocks.size();
        const uint32_t tokens = last ? left : std::min(left, workload.block_tokens);
        append_words(out, mix64(seed ^ arrival.blocks[i]), words_for(tokens, tokens_per_word));
        left -= tokens;
    }
    return out;
}

}  // namespace cadans::load
