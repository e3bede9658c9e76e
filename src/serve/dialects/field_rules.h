// Every number that a request may carry: its type, range and default, one table a dialect.
#pragma once

#include <span>
#include <string_view>

namespace cadans::serve {

/// Bounds are inclusive. `docs/api.md` lists the same rows; a test compares them.
struct NumberRule {
    std::string_view name;
    bool whole;  ///< integers only
    double low, high;
    double fallback;
    bool optional = false;  ///< absent means "not given" rather than `fallback`
};

inline constexpr double kWholeMax = 9007199254740992.0;  // 2^53: what JSON readers everywhere keep exact
inline constexpr double kIntMax = 2147483647.0;

/// What `/v1/chat/completions`, `/v1/completions` and `/v1/responses` share.
inline constexpr NumberRule kOpenAiNumbers[] = {
    {"temperature", false, 0, 2, 1},
    {"top_p", false, 0, 1, 1},
    {"top_k", true, -1, kIntMax, 0},
    {"min_p", false, 0, 1, 0},
    {"presence_penalty", false, -2, 2, 0},
    {"frequency_penalty", false, -2, 2, 0},
    {"repeat_penalty", false, 0.01, 100, 1},
    {"repetition_penalty", false, 0.01, 100, 1},
    {"repeat_last_n", true, -1, kIntMax, 64},
    {"n", true, 1, 16, 1},
    {"best_of", true, 1, 16, 1},
    {"max_tokens", true, 0, kWholeMax, 16, true},
    {"max_completion_tokens", true, 0, kWholeMax, 0, true},
    {"max_output_tokens", true, 0, kWholeMax, 0, true},
    {"logprobs", true, 0, 20, 0, true},
    {"top_logprobs", true, 0, 20, 0},
};

/// Ollama's `options`.
inline constexpr NumberRule kOllamaNumbers[] = {
    {"temperature", false, 0, 100, 0.8},       {"top_p", false, 0, 1, 0.9},
    {"top_k", true, -1, kIntMax, 40},          {"min_p", false, 0, 1, 0},
    {"presence_penalty", false, -2, 2, 0},     {"frequency_penalty", false, -2, 2, 0},
    {"repeat_penalty", false, 0.01, 100, 1.1}, {"repeat_last_n", true, -1, kIntMax, 64},
    {"num_predict", true, -2, kIntMax, -1},    {"num_ctx", true, 1, kIntMax, 0, true},
};

/// The row of this name, found when compiling: a name that is not there does not compile.
consteval const NumberRule& rule(std::span<const NumberRule> rules, std::string_view name) {
    for (const NumberRule& each : rules)
        if (each.name == name) return each;
    throw "no rule of this name";
}

}  // namespace cadans::serve
