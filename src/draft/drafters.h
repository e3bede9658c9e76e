// The drafters of a server: which of them guesses for whom.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "draft/recent_answers.h"
#include "draft/suffix_automaton.h"
#include "flow/drafter.h"

namespace cadans::draft {

/// What a name means: auto, off, lookup, suffix. Nothing for any other.
std::optional<Speculation> speculation_named(std::string_view name) noexcept;

/// Every sequence is guessed for from its own prompt and answer, and from what its asker was answered lately, where the
/// request lets that be recalled: the suffix automaton reads these answers before the prompt.
///
/// automatic  the suffix automaton, and look-up while that has not read everything yet
/// Thread rule and cost as Drafter's.
class Drafters final : public Drafter {
  public:
    static constexpr uint32_t kMostRemembered = 1 << 14;  ///< tokens of a sequence that an automaton keeps
    static constexpr uint32_t kReadAtATime = 512;         ///< some 100 us

    /// What holds for those who ask for nothing.
    explicit Drafters(Speculation usual) : usual_(usual) {}

    bool begin(const Newcomer& who) override;
    void read(SeqId seq, std::span<const TokenId> known) override;
    Guess guess(SeqId seq, std::span<const TokenId> known, std::span<TokenId> out) override;
    void end(SeqId seq, std::span<const TokenId> answer) override;

  private:
    struct One {
        bool looks_up = false;
        std::unique_ptr<SuffixAutomaton> suffixes;  ///< null: only looked up
        std::vector<TokenId> earlier;               ///< what it reads before the sequence
        std::optional<RecentAnswers::Asker> asker;  ///< whose answer this will be; none: it is not kept
    };
    static void read(One& one, std::span<const TokenId> known);

    Speculation usual_;
    std::map<SeqId, One> of_;
    RecentAnswers recent_;
};

}  // namespace cadans::draft
