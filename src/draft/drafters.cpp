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

bool Drafters::begin(const Newcomer& who) {
    const Speculation how = who.how == Speculation::as_served ? usual_ : who.how;
    if (how == Speculation::off) return false;
    One one;
    one.looks_up = how != Speculation::suffix;
    if (who.recalls) one.asker = RecentAnswers::Asker{who.model, who.scope};
    if (how != Speculation::lookup) {
        if (one.asker) one.earlier = recent_.of(*one.asker);
        const auto before = static_cast<uint32_t>(one.earlier.size());
        one.suffixes = std::make_unique<SuffixAutomaton>(before + std::min(who.tokens_max, kMostRemembered));
    }
    of_.insert_or_assign(who.seq, std::move(one));
    return true;
}

void Drafters::end(SeqId seq, std::span<const TokenId> answer) {
    const auto one = of_.find(seq);
    if (one == of_.end()) return;
    if (one->second.asker) recent_.keep(*one->second.asker, answer);
    of_.erase(one);
}

void Drafters::read(One& one, std::span<const TokenId> known) {
    if (one.suffixes == nullptr) return;
    const size_t before = one.earlier.size();
    const size_t from = one.suffixes->tokens_read();
    const size_t until = std::min(before + known.size(), from + kReadAtATime);
    for (size_t i = from; i < until; i++) one.suffixes->read(i < before ? one.earlier[i] : known[i - before]);
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
    const bool up_to_date = one.suffixes != nullptr && one.suffixes->tokens_read() == one.earlier.size() + known.size();
    if (!up_to_date) return one.looks_up ? look_up(known, out) : Guess{};
    Guess guess = one.suffixes->guess(out);
    const auto end = std::ranges::find(out.first(guess.tokens), RecentAnswers::kBetween);
    guess.tokens = static_cast<uint32_t>(end - out.begin());
    return guess.tokens == 0 ? Guess{} : guess;
}

}  // namespace cadans::draft
