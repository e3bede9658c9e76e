// A constraint that tests can foretell: an answer of a fixed length whose tokens come from fixed classes.
#pragma once

#include <algorithm>

#include "flow/constraint.h"

namespace cadans {

/// Token number n of an answer is n modulo `classes`; after `length` tokens nothing may follow. Its state is the number
/// of tokens so far.
class CountingConstraint final : public Constraint {
  public:
    CountingConstraint(uint32_t length, uint32_t classes, uint32_t vocab)
        : length_(length), classes_(classes), vocab_(vocab) {}

    ConstraintState start() const noexcept override { return 0; }
    bool allowed(ConstraintState at, std::span<uint64_t> bits) override {
        asked++;
        std::fill(bits.begin(), bits.end(), 0);
        bool any = false;
        for (uint32_t id = at % classes_; id < vocab_ && at < length_; id += classes_) {
            bits[id / 64] |= uint64_t{1} << (id % 64);
            any = true;
        }
        return any;
    }
    ConstraintState after(ConstraintState at, TokenId token) override {
        wrong += index(token) % classes_ != at % classes_ || at >= length_;
        return at + 1;
    }
    bool complete(ConstraintState at) override { return at == length_; }
    uint32_t forced(ConstraintState at, std::span<TokenId> out) noexcept override {
        uint32_t count = 0;
        if (classes_ < vocab_) return 0;
        for (; count < out.size() && at + count < length_; count++) out[count] = TokenId{(at + count) % classes_};
        return count;
    }

    uint32_t asked = 0;  ///< masks
    uint32_t wrong = 0;  ///< tokens that it had not allowed

  private:
    uint32_t length_, classes_, vocab_;
};

}  // namespace cadans
