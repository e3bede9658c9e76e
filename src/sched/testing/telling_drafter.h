// A drafter of the fake model: it knows what will come, and says it, half of it, or something else.
#pragma once

#include <map>
#include <string>

#include "base/random.h"
#include "flow/drafter.h"
#include "sched/admission.h"
#include "sched/testing/fake_executor.h"

namespace cadans::sched {

/// What it says is a pure function of seed, sequence and length. Tells of calls that a drafter need not understand.
class TellingDrafter final : public Drafter {
  public:
    TellingDrafter(const House& house, uint64_t seed) : house_(house), seed_(seed) {}

    /// Before the sequence is admitted: whose fake it is.
    void tell(SeqId seq, ModelId model, std::span<const TokenId> prompt) {
        One& one = of_[seq];
        one.model = model;
        one.prompt = index(model);
        for (const TokenId token : prompt) one.prompt = FakeExecutor::add(one.prompt, token);
    }

    bool begin(const Newcomer& who) override {
        One& one = of_[who.seq];
        if (one.inside) wrong = "it comes in twice";
        if (one.model != who.model) wrong = "it comes in with another model";
        one.inside = who.how != Speculation::off;
        one.most = who.tokens_max;
        return one.inside;
    }

    void read(SeqId seq, std::span<const TokenId> known) override {
        if (!of_[seq].inside) wrong = "a stranger is read";
        if (known.size() < of_[seq].read) wrong = "what is known shrinks";
        of_[seq].read = known.size();
    }

    Guess guess(SeqId seq, std::span<const TokenId> known, std::span<TokenId> out) override {
        read(seq, known);
        if (known.size() + out.size() >= of_[seq].most) wrong = "more is asked for than can come";
        const uint32_t vocab = house_.find(of_[seq].model)->vocab_size;
        uint64_t draw = mix64(seed_ ^ mix64(index(seq)) ^ known.size());
        const auto next = [&](uint64_t below) { return (draw = mix64(draw)) % below; };
        Guess guess{static_cast<uint32_t>(next(out.size() + 1)), static_cast<uint32_t>(1 + next(30))};
        if (next(4) == 0) guess.tokens = 0;
        const uint64_t right = next(3) == 0 ? out.size() : next(out.size() + 1);
        uint64_t history = index(of_[seq].model);
        for (const TokenId token : known) history = FakeExecutor::add(history, token);
        for (uint32_t i = 0; i < guess.tokens; i++) {
            const TokenId truth = FakeExecutor::next_token(history, vocab);
            out[i] = i < right ? truth : TokenId{static_cast<uint32_t>(next(vocab))};
            history = FakeExecutor::add(history, truth);
        }
        asked++;
        return guess;
    }

    void end(SeqId seq, std::span<const TokenId> answer) override {
        if (!of_[seq].inside) wrong = "a stranger ends";
        const uint32_t vocab = house_.find(of_[seq].model)->vocab_size;
        uint64_t history = of_[seq].prompt;
        for (const TokenId token : answer) {
            if (token != FakeExecutor::next_token(history, vocab)) wrong = "it ends with what was not its answer";
            history = FakeExecutor::add(history, token);
        }
        of_.erase(seq);
    }

    bool empty() const {
        for (const auto& [seq, one] : of_)
            if (one.inside) return false;
        return true;
    }

    std::string wrong;
    uint64_t asked = 0;

  private:
    struct One {
        ModelId model{};
        uint64_t prompt = 0;  ///< its history
        bool inside = false;
        size_t read = 0, most = 0;
    };

    const House& house_;
    uint64_t seed_;
    std::map<SeqId, One> of_;
};

}  // namespace cadans::sched
