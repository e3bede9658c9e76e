// Goal: a guess is what really followed earlier. Method: against searches that look at every place.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/random.h"
#include "base/testing/allocations.h"
#include "draft/drafters.h"
#include "draft/lookup.h"
#include "draft/recent_answers.h"
#include "draft/suffix_automaton.h"

namespace cadans::draft {
namespace {

using Tokens = std::vector<TokenId>;

Tokens tokens(std::initializer_list<uint32_t> ids) {
    Tokens out;
    for (const uint32_t id : ids) out.push_back(TokenId{id});
    return out;
}

/// Words of a small vocabulary, and pieces of what came before.
Tokens random_text(uint64_t seed, size_t length, uint32_t vocab) {
    Tokens text;
    uint64_t draws = 0;
    const auto draw = [&](uint64_t below) { return mix64(seed * 7919 + ++draws) % below; };
    while (text.size() < length) {
        if (text.size() > 4 && draw(3) == 0) {
            const size_t from = draw(text.size() - 1), count = 1 + draw(20);
            for (size_t i = 0; i < count; i++) text.push_back(text[from + i]);
        } else {
            text.push_back(TokenId{static_cast<uint32_t>(draw(vocab))});
        }
    }
    text.resize(length);
    return text;
}

/// How long an ending of text[0, end) also ends at `at` < end.
uint32_t common(const Tokens& text, size_t end, size_t at) {
    uint32_t match = 0;
    while (match < at && text[at - 1 - match] == text[end - 1 - match]) match++;
    return match;
}

uint32_t longest_match(const Tokens& text, size_t end) {
    uint32_t longest = 0;
    for (size_t at = 1; at < end; at++) longest = std::max(longest, common(text, end, at));
    return longest;
}

TEST(lookup, says_what_followed_the_latest_of_the_longest_matches) {
    for (uint64_t seed = 0; seed < 200; seed++) {
        const Tokens text = random_text(seed, 2 + seed, static_cast<uint32_t>(2 + seed % 9));
        size_t where = 0;
        uint32_t longest = 0;
        for (size_t at = 1; at < text.size(); at++) {
            const uint32_t match = std::min(common(text, text.size(), at), kLongestMatch);
            if (match < longest || match == 0) continue;
            // Of equally long ones the latest; a search from the end stops at the first of the greatest length.
            where = at;
            longest = match;
        }
        Tokens out(7);
        const Guess guess = look_up(text, out);
        ASSERT_EQ(guess.match, longest) << seed;
        if (longest == 0) continue;
        ASSERT_EQ(guess.tokens, out.size());
        for (size_t i = 0; i < out.size() && where + i < text.size(); i++) ASSERT_EQ(out[i], text[where + i]) << seed;
    }
}

TEST(lookup, goes_round_where_a_repetition_does) {
    Tokens out(7);
    const Guess guess = look_up(tokens({5, 1, 2, 3, 1, 2, 3}), out);
    EXPECT_EQ(guess.match, 3u);
    EXPECT_EQ(out, tokens({1, 2, 3, 1, 2, 3, 1}));
}

TEST(lookup, has_nothing_to_say_where_nothing_repeats) {
    Tokens out(3);
    EXPECT_EQ(look_up(tokens({1, 2, 3}), out).tokens, 0u);
    EXPECT_EQ(look_up(tokens({1}), out).tokens, 0u);
    EXPECT_EQ(look_up({}, out).tokens, 0u);
    EXPECT_EQ(look_up(tokens({1, 1}), std::span<TokenId>()).tokens, 0u);
}

TEST(suffix_automaton, finds_the_longest_match_after_every_token) {
    for (uint64_t seed = 0; seed < 60; seed++) {
        const Tokens text = random_text(seed, 300, static_cast<uint32_t>(2 + seed % 30));
        SuffixAutomaton automaton(300);
        Tokens out(1);
        for (size_t end = 1; end <= text.size(); end++) {
            automaton.read(text[end - 1]);
            const Guess guess = automaton.guess(out);
            const uint32_t longest = longest_match(text, end);
            ASSERT_EQ(guess.match, guess.tokens == 0 ? 0 : longest) << seed << " " << end;
            // Where the match is at the very end of the rest there may be nothing that followed; else it did follow.
            bool followed = false, any = false;
            for (size_t at = 1; at < end; at++) {
                if (common(text, end, at) < longest) continue;
                any = true;
                followed = followed || (guess.tokens > 0 && text[at] == out[0]);
            }
            ASSERT_EQ(guess.tokens, any && longest > 0 ? 1u : 0u) << seed << " " << end;
            ASSERT_EQ(followed, guess.tokens > 0) << seed << " " << end;
        }
    }
}

TEST(suffix_automaton, says_what_followed_most_often) {
    SuffixAutomaton automaton(100);
    Tokens out(2);
    for (const uint32_t next : {10u, 11u, 10u, 10u, 11u, 10u})
        for (const uint32_t id : {1u, 2u, next, 50u + next}) automaton.read(TokenId{id});
    for (const uint32_t id : {77u, 1u, 2u}) automaton.read(TokenId{id});
    const Guess guess = automaton.guess(out);
    EXPECT_EQ(guess.match, 2u);
    EXPECT_EQ(out, tokens({10, 60}));
}

TEST(suffix_automaton, goes_round_where_a_repetition_does) {
    SuffixAutomaton automaton(100);
    for (const uint32_t id : {5u, 1u, 2u, 3u, 1u, 2u, 3u}) automaton.read(TokenId{id});
    Tokens out(8);
    EXPECT_EQ(automaton.guess(out).tokens, 8u);
    EXPECT_EQ(out, tokens({1, 2, 3, 1, 2, 3, 1, 2}));
}

TEST(suffix_automaton, still_finds_what_it_remembers_when_it_is_full) {
    SuffixAutomaton automaton(10);
    for (uint32_t id = 0; id < 10; id++) automaton.read(TokenId{id});
    for (const uint32_t id : {90u, 91u, 3u, 4u, 5u}) automaton.read(TokenId{id});
    Tokens out(3);
    const Guess guess = automaton.guess(out);
    EXPECT_EQ(guess.match, 3u);
    EXPECT_EQ(out, tokens({6, 7, 8}));
}

TEST(drafters, allocate_nothing_once_a_sequence_is_in) {
    for (const Speculation how : {Speculation::lookup, Speculation::suffix, Speculation::automatic}) {
        Drafters drafters(Speculation::off);
        const Tokens text = random_text(3, 3000, 40);
        ASSERT_TRUE(drafters.begin({.seq = SeqId{1}, .how = how, .tokens_max = 3000}));
        Tokens out(kMostDrafts);
        const uint64_t before = allocations_of_all_threads();
        for (size_t end = 1; end <= text.size(); end++) {
            if (end % 3 == 0) drafters.read(SeqId{1}, std::span(text).first(end));
            drafters.guess(SeqId{1}, std::span(text).first(end), out);
        }
        EXPECT_EQ(allocations_of_all_threads() - before, 0u);
        drafters.end(SeqId{1}, {});
    }
}

TEST(drafters, do_as_the_request_says_and_else_as_the_server_does) {
    Drafters off(Speculation::off), on(Speculation::lookup);
    EXPECT_FALSE(off.begin({.seq = SeqId{1}, .tokens_max = 10}));
    EXPECT_TRUE(off.begin({.seq = SeqId{1}, .how = Speculation::suffix, .tokens_max = 10}));
    EXPECT_TRUE(on.begin({.seq = SeqId{1}, .tokens_max = 10}));
    EXPECT_FALSE(on.begin({.seq = SeqId{2}, .how = Speculation::off, .tokens_max = 10}));
    EXPECT_EQ(speculation_named("auto"), Speculation::automatic);
    EXPECT_EQ(speculation_named("suffix"), Speculation::suffix);
    EXPECT_FALSE(speculation_named("always"));
}

TEST(drafters, look_up_while_the_automaton_is_behind) {
    Drafters drafters(Speculation::automatic);
    const Tokens text = random_text(5, 4 * Drafters::kReadAtATime, 30);
    constexpr uint32_t kMost = 4 * Drafters::kReadAtATime;
    ASSERT_TRUE(drafters.begin({.seq = SeqId{1}, .tokens_max = kMost}));
    Tokens out(4);
    EXPECT_GT(drafters.guess(SeqId{1}, text, out).tokens, 0u);
    ASSERT_TRUE(drafters.begin({.seq = SeqId{2}, .how = Speculation::suffix, .tokens_max = kMost}));
    EXPECT_EQ(drafters.guess(SeqId{2}, text, out).tokens, 0u) << "one that only has the automaton waits for it";
    for (int i = 0; i < 4; i++) drafters.read(SeqId{2}, text);
    EXPECT_GT(drafters.guess(SeqId{2}, text, out).tokens, 0u);
}

/// A sequence of one asker that begins, guesses behind `known` and, with an answer, ends.
Guess guess_of(Drafters& drafters, const Newcomer& who, const Tokens& known, Tokens& out, const Tokens& answer = {}) {
    EXPECT_TRUE(drafters.begin(who));
    Guess guess;
    for (size_t done = 0; done <= RecentAnswers::kTokens + known.size(); done += Drafters::kReadAtATime)
        guess = drafters.guess(who.seq, known, out);
    drafters.end(who.seq, answer);
    return guess;
}

TEST(drafters, recall_what_an_asker_was_answered_lately) {
    Drafters drafters(Speculation::suffix);
    const Newcomer me{.seq = SeqId{1}, .tokens_max = 100, .model = ModelId{0}, .scope = 7, .recalls = true};
    Tokens out(8);
    EXPECT_EQ(guess_of(drafters, me, tokens({1, 2, 3}), out, tokens({4, 5, 6, 7, 8})).tokens, 0u);
    const Guess guess = guess_of(drafters, me, tokens({9, 4, 5}), out, tokens({20, 21}));
    EXPECT_EQ(guess.match, 2u);
    ASSERT_EQ(guess.tokens, 3u) << "to the end of that answer, and not into what stands behind it";
    out.resize(3);
    EXPECT_EQ(out, tokens({6, 7, 8}));
    out.resize(8);
    EXPECT_EQ(guess_of(drafters, me, tokens({9, 8}), out).tokens, 0u) << "no answer goes on into the next";
}

TEST(drafters, tell_nobody_what_another_was_answered) {
    Drafters drafters(Speculation::automatic);
    const Newcomer me{.seq = SeqId{1}, .tokens_max = 100, .model = ModelId{0}, .scope = 7, .recalls = true};
    Newcomer other_scope = me, other_model = me, wants_none = me;
    other_scope.scope = 8;
    other_model.model = ModelId{1};
    wants_none.recalls = false;
    Tokens out(8);
    const Tokens secret = tokens({4, 5, 6, 7, 8}), begun = tokens({9, 4, 5});
    guess_of(drafters, me, tokens({1, 2, 3}), out, secret);
    for (const Newcomer& who : {other_scope, other_model, wants_none})
        EXPECT_EQ(guess_of(drafters, who, begun, out).tokens, 0u);
    EXPECT_EQ(guess_of(drafters, me, begun, out).tokens, 3u);
    guess_of(drafters, wants_none, tokens({1}), out, tokens({30, 31, 32, 33}));
    EXPECT_EQ(guess_of(drafters, me, tokens({9, 30, 31}), out).tokens, 0u) << "what is not to be recalled is not kept";
}

TEST(recent_answers, keep_to_their_bounds_and_forget_the_oldest) {
    RecentAnswers recent;
    const RecentAnswers::Asker me{ModelId{0}, 1};
    for (uint32_t n = 0; n < 2 * RecentAnswers::kAnswers; n++) recent.keep(me, tokens({n}));
    Tokens kept = recent.of(me);
    ASSERT_EQ(kept.size(), 2 * RecentAnswers::kAnswers);
    EXPECT_EQ(kept.front(), TokenId{RecentAnswers::kAnswers});
    EXPECT_EQ(kept.back(), RecentAnswers::kBetween);

    Tokens longest(2 * RecentAnswers::kTokens, TokenId{5});
    longest.back() = TokenId{6};
    recent.keep(me, longest);
    kept = recent.of(me);
    ASSERT_EQ(kept.size(), RecentAnswers::kTokens);
    EXPECT_EQ(kept[RecentAnswers::kTokens - 2], TokenId{6}) << "of one that is too long, the end";

    for (uint64_t scope = 2; scope < 2 + RecentAnswers::kAskers; scope++) {
        recent.keep({ModelId{0}, scope}, tokens({1}));
        recent.of({ModelId{0}, 2});
    }
    EXPECT_EQ(recent.askers(), RecentAnswers::kAskers);
    EXPECT_TRUE(recent.of(me).empty()) << "who did not come for longest";
    EXPECT_FALSE(recent.of({ModelId{0}, 2}).empty());
    recent.keep({ModelId{0}, 99}, {});
    EXPECT_TRUE(recent.of({ModelId{0}, 99}).empty());
}

}  // namespace
}  // namespace cadans::draft
