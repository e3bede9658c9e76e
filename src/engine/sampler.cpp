// Main idea: every filter is a floor under the logits, so one pass with noise over what is left draws the token.
// Equal logits stay or fall together, so a filter's result does not depend on any order.
#include "engine/sampler.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/random.h"
#include "kernels/exact_math.h"

namespace cadans::engine {
namespace {

constexpr float kForbidden = -1e30F;   // the logit of a token that a bias of -inf or a mask takes out: still a number
constexpr float kAllowed = -1e29F;     // every other logit is above this
constexpr float kGreedyBelow = 1e-6F;  // noise tells no two logits apart at this temperature; below it, they overflow

constexpr auto kBetter = [](const auto& a, const auto& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
};

float log_of(float x) { return static_cast<float>(kernels::exact_log(static_cast<double>(x))); }

}  // namespace

Sampler::Sampler(const kernels::KernelTable& table, uint32_t vocab, uint32_t max_context_tokens)
    : k_(table), vocab_(vocab), candidates_(vocab), adjusted_(vocab), scaled_(vocab) {
    recent_.reserve(max_context_tokens);
}

bool Sampler::finite(const float* logits) const {
    uint32_t largest = 0;  // exponent field: all ones is infinity or NaN
    for (uint32_t i = 0; i < vocab_; i++) largest = std::max(largest, std::bit_cast<uint32_t>(logits[i]) & 0x7F800000U);
    return largest != 0x7F800000U;
}

bool Sampler::sample(const float* logits, const SamplingParams& params, std::span<const TokenId> known, TokenScore& out,
                     std::span<const uint64_t> allowed) {
    if (!finite(logits)) return false;
    const float* choose_from = logits;
    if (!allowed.empty() || !params.logit_bias.empty() || params.repeat_penalty != 1.0F ||
        params.presence_penalty != 0.0F || params.frequency_penalty != 0.0F) {
        std::copy_n(logits, vocab_, adjusted_.data());
        adjust(adjusted_.data(), params, known);
        if (!allowed.empty()) forbid(adjusted_.data(), allowed);
        choose_from = adjusted_.data();
    }
    size_t token = vocab_;
    if (params.temperature >= kGreedyBelow) {
        const uint64_t noise = noise_key(params.seed, params.choice, known.size());
        token =
            k_.gumbel_argmax(choose_from, vocab_, 1.0F / params.temperature, lowest_kept(choose_from, params), noise);
    }
    if (token == vocab_) token = k_.argmax(choose_from, vocab_);
    out.token = TokenId{static_cast<uint32_t>(token)};
    out.logprob = 0.0F;
    out.top_count = 0;
    if (params.logprobs) write_scores(logits, out.token, params.top_logprobs, out);
    return true;
}

bool Sampler::score(const float* logits, TokenId token, uint8_t top, TokenScore& out) {
    if (!finite(logits)) return false;
    write_scores(logits, token, top, out);
    return true;
}

void Sampler::write_scores(const float* logits, TokenId token, uint8_t top, TokenScore& out) {
    const float largest = k_.max(logits, vocab_);
    const float log_sum = largest + log_of(k_.sum_exp(logits, vocab_, largest));
    out.token = token;
    out.logprob = logits[index(token)] - log_sum;
    out.top_count = 0;
    if (top == 0) return;
    const size_t n = best(logits, top, std::numeric_limits<float>::lowest());
    for (size_t i = 0; i < n; i++) out.top[i] = {TokenId{candidates_[i].id}, candidates_[i].logit - log_sum};
    out.top_count = static_cast<uint8_t>(n);
}

void Sampler::forbid(float* logits, std::span<const uint64_t> allowed) const {
    for (uint32_t first = 0; first < vocab_; first += 64) {
        const uint64_t bits = allowed[first / 64];
        if (bits == ~uint64_t{0}) continue;
        const uint32_t end = std::min(first + 64, vocab_);
        if (bits == 0) {
            std::fill(logits + first, logits + end, kForbidden);
            continue;
        }
        for (uint32_t i = first; i < end; i++)
            if ((bits >> (i - first) & 1) == 0) logits[i] = kForbidden;
    }
}

void Sampler::adjust(float* logits, const SamplingParams& params, std::span<const TokenId> known) {
    for (const LogitBias& bias : params.logit_bias) {
        float& logit = logits[index(bias.token)];
        logit = std::max(logit + bias.bias, kForbidden);
    }
    recent_.clear();
    for (const TokenId token : known.last(std::min<size_t>(params.repeat_last_n, known.size())))
        recent_.push_back(index(token));
    std::sort(recent_.begin(), recent_.end());
    for (size_t i = 0; i < recent_.size();) {
        size_t end = i;
        while (end < recent_.size() && recent_[end] == recent_[i]) end++;
        float& logit = logits[recent_[i]];
        if (logit > kAllowed) {
            logit = logit > 0 ? logit / params.repeat_penalty : logit * params.repeat_penalty;
            logit -= static_cast<float>(end - i) * params.frequency_penalty + params.presence_penalty;
        }
        i = end;
    }
}

/// The floor that top-k, top-p and min-p leave, in this order.
float Sampler::lowest_kept(const float* logits, const SamplingParams& params) {
    float floor = kAllowed;
    if (params.top_k > 0 && params.top_k < vocab_) {
        const size_t n = best(logits, params.top_k, kAllowed);
        if (n > 0) floor = candidates_[n - 1].logit;
    }
    if (params.top_p >= 1.0F && params.min_p <= 0.0F) return floor;
    const float largest = k_.max(logits, vocab_);
    if (params.top_p < 1.0F)
        floor = std::max(floor, nucleus_floor(logits, params.top_p, params.temperature, largest, floor));
    if (params.min_p > 0.0F) floor = std::max(floor, largest + params.temperature * log_of(params.min_p));
    return std::min(floor, largest);
}

/// The logit at which the best tokens above `floor` first hold `top_p` of the probability above it.
float Sampler::nucleus_floor(const float* logits, float top_p, float temperature, float largest, float floor) {
    // Tokens this far below the best hold less than 1 - top_p of the mass all together: they cannot be needed.
    const float rest = std::max(1.0F - top_p, 1e-6F);
    const float reach = temperature * (log_of(static_cast<float>(vocab_)) - log_of(rest) + 0.5F);
    const size_t n = best(logits, vocab_, std::max(floor, largest - reach));
    const float inverse = 1.0F / temperature;
    double total = 0;
    if (floor > kAllowed) {  // top-k has cut before: its survivors are the whole
        size_t kept = 0;
        for (uint32_t i = 0; i < vocab_; i++)
            if (logits[i] >= floor) scaled_[kept++] = (logits[i] - largest) * inverse;
        total = k_.sum_exp(scaled_.data(), kept, 0.0F);
    } else {
        k_.scale(logits, inverse, vocab_, scaled_.data());
        total = k_.sum_exp(scaled_.data(), vocab_, k_.max(scaled_.data(), vocab_));
    }
    double mass = 0;
    for (size_t i = 0; i < n; i++) {
        mass += kernels::exact_exp(static_cast<double>((candidates_[i].logit - largest) * inverse));
        if (mass >= static_cast<double>(top_p) * total) return candidates_[i].logit;
    }
    return floor;
}

/// Puts the `n` largest logits that reach `at_least` at the front of candidates_, best first; returns their number.
size_t Sampler::best(const float* logits, size_t n, float at_least) {
    size_t found = 0;
    for (uint32_t i = 0; i < vocab_; i++) {
        candidates_[found] = {logits[i], i};
        found += logits[i] >= at_least;
    }
    n = std::min(n, found);
    const auto begin = candidates_.begin(), middle = begin + static_cast<std::ptrdiff_t>(n);
    const auto end = begin + static_cast<std::ptrdiff_t>(found);
    if (n < found) std::nth_element(begin, middle, end, kBetter);
    std::sort(begin, middle, kBetter);
    return n;
}

}  // namespace cadans::engine
