// How long masks and compiling take: random answers to many schemas over a real vocabulary. Prints percentiles; 1 if
// over the limits.
//
//     grammar_bench VOCABULARY SCHEMAS [WALKS=2] [TOKENS=200]
//
// VOCABULARY has a line a token, its bytes in hexadecimal, empty for one that is not text. SCHEMAS is a JSON array.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "grammar/json_text.h"
#include "grammar/schema.h"
#include "grammar/token_mask.h"

namespace cadans::grammar {
namespace {

constexpr double kMaskMedian = 50, kMaskP99 = 500, kCompileMedian = 20'000;  // microseconds

using Clock = std::chrono::steady_clock;

double micros(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

double percentile(std::vector<double>& times, double q) {
    std::sort(times.begin(), times.end());
    return times.empty() ? 0 : times[static_cast<size_t>(q * static_cast<double>(times.size() - 1))];
}

std::vector<std::string> read_tokens(const char* path) {
    std::ifstream file(path);
    std::vector<std::string> tokens;
    for (std::string line; std::getline(file, line);) {
        std::string bytes;
        for (size_t i = 0; i + 1 < line.size(); i += 2)
            bytes += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
        tokens.push_back(std::move(bytes));
    }
    return tokens;
}

struct Times {
    std::vector<double> mask, compile;
    size_t refused = 0, tokens = 0, most_stack_bytes = 0;
};

/// Answers drawn evenly from what the mask allows.
void walk(const Grammar& grammar, MaskCache& cache, const std::vector<std::string>& tokens, uint64_t seed, int walks,
          int most, Times& times) {
    Stacks stacks(grammar);
    TokenMask mask(cache, stacks);
    std::vector<uint64_t> bits(cache.trie().words());
    std::vector<uint32_t> allowed;
    for (int w = 0; w < walks; w++) {
        Matcher matcher(stacks);
        for (int step = 0; step < most; step++) {
            const auto begin = Clock::now();
            const bool good = mask.fill(matcher, bits).has_value();
            times.mask.push_back(micros(Clock::now() - begin));
            allowed.clear();
            for (uint32_t word = 0; word < bits.size(); word++)
                for (uint64_t rest = bits[word]; rest != 0; rest &= rest - 1)
                    allowed.push_back(word * 64 + static_cast<uint32_t>(__builtin_ctzll(rest)));
            if (!good || allowed.empty()) break;
            const uint32_t id = allowed[mix64(seed + static_cast<uint64_t>(w * most + step)) % allowed.size()];
            if (tokens[id].empty() || !matcher.accept(tokens[id])) break;
            times.tokens++;
        }
    }
    times.most_stack_bytes = std::max(times.most_stack_bytes, stacks.bytes());
}

int run(int argc, char** argv) {
    const auto tokens = read_tokens(argv[1]);
    const std::vector<std::string_view> views(tokens.begin(), tokens.end());
    auto begin = Clock::now();
    const auto trie = TokenTrie::make(views, {});
    if (!trie) return 1;
    fmt::print("{} tokens: the tree has {} nodes and takes {:.0f} ms to make\n", tokens.size(), trie->nodes(),
               micros(Clock::now() - begin) / 1000);
    std::ifstream file(argv[2]);
    const auto schemas = nlohmann::ordered_json::parse(file);
    const int walks = argc > 3 ? std::atoi(argv[3]) : 2, most = argc > 4 ? std::atoi(argv[4]) : 200;
    MaskCache cache(*trie);
    Times times;
    uint64_t seed = 1;
    for (const auto& schema : schemas) {
        begin = Clock::now();
        const auto grammar = schema_grammar(schema);
        times.compile.push_back(micros(Clock::now() - begin));
        if (grammar)
            walk(*grammar, cache, tokens, mix64(++seed), walks, most, times);
        else
            times.refused++;
    }
    const double median = percentile(times.mask, 0.5), p99 = percentile(times.mask, 0.99);
    const double compile = percentile(times.compile, 0.5);
    fmt::print("{} schemas, {} refused; compiling takes {:.0f} us (P50), {:.0f} us (P99), {:.0f} us at most\n",
               schemas.size(), times.refused, compile, percentile(times.compile, 0.99), times.compile.back());
    fmt::print(
        "{} masks: {:.1f} us (P50), {:.1f} us (P90), {:.1f} us (P99), {:.1f} us at most; {} KiB of masks, {} KiB of "
        "stacks\n",
        times.mask.size(), median, percentile(times.mask, 0.9), p99, times.mask.back(), cache.bytes() >> 10,
        times.most_stack_bytes >> 10);
    return median <= kMaskMedian && p99 <= kMaskP99 && compile <= kCompileMedian ? 0 : 1;
}

}  // namespace
}  // namespace cadans::grammar

int main(int argc, char** argv) {
    if (argc < 3) {
        fmt::print(stderr, "usage: grammar_bench VOCABULARY SCHEMAS [WALKS] [TOKENS]\n");
        return 2;
    }
    return cadans::grammar::run(argc, argv);
}
