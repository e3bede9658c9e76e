#include "draft/drafters.h"

#include <algorithm>

#include "base/check.h"
#include "draft/lookup.h"

namespace cadans::draft {

std::optional<Speculation> speculation_named(std::string_view name) noexcept {
    if (name == "auto") return Speculation::automatic;
    if (name == "off") return Speculation::off;
    if (name == "lookup") return Speculation::lookup;
    if (name == "suffix") return Speculation::suffix;
    return std::nullopt;
}

bool Drafters::begin(SeqId seq, Speculation how, uint32_t tokens_max) {
    if (how == Speculation::as_served) how = usual_;
    if (how == Speculation::off) return false;
    One one{.looks_up = how != Speculation::suffix, .suffixes = nullptr};
    if (how != Speculation::lookup)
        one.suffixes = std::make_unique<SuffixAutomaton>(std::min(tokens_max, kMostRemembered));
    of_.insert_or_assign(seq, std::move(one));
    return true;
}

void Drafters::read(One& one, std::span<const TokenId> known) {
    if (one.suffixes == nullptr) return;
    const size_t from = one.suffixes->tokens_read();
    const size_t until = std::min(known.size(), from + kReadAtATime);
    for (size_t i = from; i < until; i++) one.suffixes->read(known[i]);
}

void Drafters::read(SeqId seq, std::span<const TokenId> known) {
    const auto one = of_.find(seq);
    check(one != of_.end(), "a drafter knows whom it reads");
    read(one->second, known);
}

Guess Drafters::guess(SeqId seq, std::span<const TokenId> known, std::span<TokenId> out) {
    const auto found = of_.find(seq);
    check(found != of_.end(), "a drafter knows whom it guesses for");
    One& one = found->second;
    read(one, known);
    const bool up_to_date = one.suffixes != nullptr && one.suffixes->tokens_read() == known.size();
    if (up_to_date) return one.suffixes->guess(out);
    return one.looks_up ? look_up(known, out) : Guess{};
}

}  // namespace cadans::draft
