#include "grammar/matcher.h"

namespace cadans::grammar {

bool Matcher::accept(std::string_view bytes) {
    StackId at = at_;
    for (const char c : bytes) {
        at = stacks_->step(at, static_cast<uint8_t>(c));
        if (at == Stacks::kDead) return false;
    }
    at_ = at;
    return true;
}

std::string_view Matcher::forced(std::span<char> out) const {
    size_t count = 0;
    StackId at = at_;
    while (count < out.size() && !Matcher(*stacks_, at).may_end()) {
        const auto steps = stacks_->steps(at);
        if (steps.size() != 1 || steps[0].lo != steps[0].hi) break;
        out[count++] = static_cast<char>(steps[0].lo);
        at = steps[0].to;
    }
    return {out.data(), count};
}

}  // namespace cadans::grammar
