// The mask is what trying every token one by one gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "grammar/gbnf.h"
#include "grammar/json_text.h"
#include "grammar/matcher.h"
#include "grammar/regex.h"
#include "grammar/token_mask.h"

namespace cadans::grammar {
namespace {

/// Every byte, pieces of JSON, pieces of characters, and random strings over a few letters.
std::vector<std::string> small_vocabulary(uint32_t seed) {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; byte++) tokens.emplace_back(1, static_cast<char>(byte));
    for (const char* text :
         {"\":",    "\": ",   "\", \"", "\"}",  "\"]",      "{\"",    "[\"",  "[[",       "]]",       "}}",   "},{",
          "},\n  ", "\n   ",  "true",   "null", "false",    "tru",    "e,",   "12",       "-1",       "1.5",  "0e",
          "\\n",    "\\u00",  "\\\"",   "é",    "\xC3",     "\xA9\"", "日本", "\xE6\x97", "\xA5\xE6", "🙂", "hello",
          " world", "abc\",", "ab",     "aab",  "\"a\": 1", "{}",     "[]",   "a\n",      "\t",       "1,2",  "], ["})
        tokens.emplace_back(text);
    std::mt19937 random(seed);
    const std::string letters = "ab{}[]\":, \n0.1-e\\";
    for (int i = 0; i < 200; i++) {
        std::string text;
        for (size_t n = 1 + random() % 6; n > 0; n--) text += letters[random() % letters.size()];
        tokens.push_back(text);
    }
    tokens.emplace_back();         // a control token
    tokens.emplace_back("<end>");  // ends answers
    tokens.push_back("ab");        // twice
    return tokens;
}

struct Walk {
    Grammar grammar;
    std::vector<std::string> texts;
    TokenTrie trie;
    Stacks stacks;
    MaskCache cache;
    TokenMask mask;

    /// Without those that hold a byte which cannot be written.
    static std::vector<std::string> written(std::vector<std::string> texts, const Alphabet& alphabet) {
        for (std::string& text : texts)
            if (!std::ranges::all_of(text, [&](char byte) { return alphabet[static_cast<uint8_t>(byte)]; }))
                text.clear();
        return texts;
    }
    static TokenTrie trie_of(const std::vector<std::string>& texts) {
        std::vector<std::string_view> views(texts.begin(), texts.end());
        const TokenId end{static_cast<uint32_t>(texts.size() - 2)};
        return *TokenTrie::make(views, std::span(&end, 1));
    }
    Walk(Grammar made, uint32_t seed)
        : grammar(std::move(made)),
          texts(written(small_vocabulary(seed), grammar.alphabet())),
          trie(trie_of(texts)),
          stacks(grammar),
          cache(trie),
          mask(cache, stacks) {}

    /// Walks at random through the masks; every mask is checked against every token.
    void run(uint32_t seed, int steps) {
        std::mt19937 random(seed);
        Matcher matcher(stacks);
        std::vector<uint64_t> bits(trie.words());
        std::string text;
        for (int step = 0; step < steps; step++) {
            ASSERT_TRUE(mask.fill(matcher, bits).has_value());
            std::vector<uint32_t> allowed;
            for (uint32_t id = 0; id < texts.size(); id++) {
                const bool is_end = id == texts.size() - 2;
                Matcher copy = matcher;
                const bool expected = is_end ? matcher.may_end() : !texts[id].empty() && copy.accept(texts[id]);
                ASSERT_EQ(bits[id / 64] >> (id % 64) & 1, expected)
                    << "token '" << texts[id] << "' behind '" << text << "'";
                if (expected && !is_end) allowed.push_back(id);
            }
            ASSERT_EQ(allowed.empty(), matcher.must_end()) << text;
            if (allowed.empty()) break;
            const std::string& next = texts[allowed[random() % allowed.size()]];
            ASSERT_TRUE(matcher.accept(next));
            text += next;
        }
        stacks.check_invariants();
    }
};

void check_grammar(Result<Grammar> grammar) {
    ASSERT_TRUE(grammar.has_value()) << grammar.error().where << ": " << grammar.error().message;
    Walk walk(*std::move(grammar), 7);
    for (uint32_t seed = 0; seed < 12; seed++) walk.run(seed, 60);
}

TEST(token_mask, is_brute_force_in_json_mode) { check_grammar(json_mode()); }

TEST(token_mask, is_brute_force_for_regular_expressions) {
    for (const char* pattern : {"[a-e]*b", "(ab|a)(b|c)*", "\"[^\"]{2,5}\"", "(a{0,3}b){2,4}", "[\\u00e0-\\u00ff]+x?",
                                "a?b?\\{+", ".*", "(?:\"|\\\\|[0-9.]+)*e"})
        check_grammar(regex_grammar(pattern));
}

TEST(token_mask, is_brute_force_for_recursive_grammars) {
    for (const char* source : {
             "root ::= \"[\" (root (\",\" root)*)? \"]\" | \"a\"+",
             "root ::= a | b\na ::= \"a\" a \"b\" | \"\"\nb ::= \"a\" b \"bb\" | \"\"",
             "root ::= x root | \"1\"\nx ::= (\"a\" | \"ab\") y\ny ::= \"b\"? [^\\x00-\\x1f\"]?",
             "root ::= \"\\\"\" [^\"\\\\\\x00-\\x1f]* \"\\\"\" root?",
             "root ::= s s s\ns ::= \"a\"? t\nt ::= \"b\"? | s2\ns2 ::= \"{\" s \"}\"",
         })
        check_grammar(gbnf_grammar(source));
}

/// Without some control characters, the beginnings of rare characters, and the letter c.
Limits without_some_bytes() {
    Limits limits;
    for (const unsigned byte : {0x04, 0x06, 0x1D, 0x7F, 0xF1, 0xF2}) limits.alphabet.reset(byte);
    limits.alphabet.reset('c');
    return limits;
}

TEST(token_mask, is_brute_force_where_some_bytes_cannot_be_written) {
    const Limits limits = without_some_bytes();
    check_grammar(json_mode(limits));
    for (const char* pattern :
         {"[a-e]*b", "(ab|a)(b|c)*", "\"[^\"]{2,5}\"", ".*", "[\xF1\x80\x80\x80-\xF3\x80\x80\x80é]+x"})
        check_grammar(regex_grammar(pattern, limits));
    check_grammar(
        gbnf_grammar("root ::= s s s\ns ::= \"a\"? t | \"dc\"\nt ::= \"b\"? | s2\ns2 ::= \"{\" s \"}\"", limits));
}

TEST(token_mask, nobody_comes_to_where_only_what_cannot_be_written_goes_on) {
    const auto grammar = regex_grammar("ab(c|dc|e)|dac|a", without_some_bytes());
    ASSERT_TRUE(grammar.has_value());
    Stacks stacks(*grammar);
    for (const char* text : {"a", "abe"}) {
        Matcher matcher(stacks);
        EXPECT_TRUE(matcher.accept(text) && matcher.may_end()) << text;
    }
    for (const char* text : {"abc", "abd", "d", "da"}) EXPECT_FALSE(Matcher(stacks).accept(text)) << text;
    const auto none = regex_grammar("a+c", without_some_bytes());
    ASSERT_FALSE(none.has_value());
    EXPECT_NE(none.error().message.find("vocabulary"), std::string::npos) << none.error().message;
}

TEST(token_mask, forgets_and_finds_the_same_again) {
    auto grammar = json_mode();
    Walk walk(*std::move(grammar), 9);
    MaskCache tiny(walk.trie, 1);
    TokenMask other(tiny, walk.stacks);
    Matcher matcher(walk.stacks);
    std::vector<uint64_t> a(walk.trie.words()), b(walk.trie.words());
    for (const char* part : {"{", "\"a", "\": ", "[1", ", ", "{}", "]", "}"}) {
        ASSERT_TRUE(matcher.accept(part));
        ASSERT_TRUE(walk.mask.fill(matcher, a).has_value() && other.fill(matcher, b).has_value());
        EXPECT_EQ(a, b);
    }
    EXPECT_GT(tiny.generation(), 3U);
}

/// Fills the mask behind a text, in memory of its own unless told otherwise.
struct Rereader {
    const Walk& walk;
    MaskCache cache;
    Stacks stacks;
    TokenMask mask;

    explicit Rereader(const Walk& of, uint64_t visits_max = MaskCache::kVisitsMax, size_t bytes_max = Stacks::kBytesMax)
        : walk(of), cache(of.trie, size_t{64} << 20, visits_max), stacks(of.grammar, bytes_max), mask(cache, stacks) {}
    bool fills(std::string_view text) {
        Matcher matcher(stacks);
        std::vector<uint64_t> bits(walk.trie.words());
        return matcher.accept(text) && mask.fill(matcher, bits).has_value();
    }
};

TEST(token_mask, that_costs_too_much_fails_where_it_does_and_nowhere_else) {
    Walk walk(*regex_grammar("x[^b]*|y"), 7);
    Rereader few(walk, 100);
    EXPECT_TRUE(few.fills(""));
    EXPECT_FALSE(few.fills("x"));
    EXPECT_FALSE(few.fills("xaa"));
    EXPECT_TRUE(few.fills("y"));
    EXPECT_TRUE(few.fills(""));
}

TEST(token_mask, fails_or_not_whatever_was_asked_before) {
    Walk walk(*gbnf_grammar("root ::= \"x\" a | \"x\" b | \"y\" a | \"z\" b\na ::= [^b]+\nb ::= [^a]+"), 7);
    uint64_t enough = 1;
    while (!Rereader(walk, enough).fills("ycc") || !Rereader(walk, enough).fills("zcc")) enough++;
    ASSERT_GT(enough, 50u) << "these two have something to count";
    const uint64_t most = enough + enough / 4;
    EXPECT_FALSE(Rereader(walk, most).fills("xcc")) << "both together are too much";
    Rereader warm(walk, most);
    EXPECT_TRUE(warm.fills("ycc"));
    EXPECT_TRUE(warm.fills("zcc"));
    EXPECT_FALSE(warm.fills("xcc")) << "also when both are known";
    EXPECT_TRUE(warm.fills("ycc"));
    EXPECT_TRUE(Rereader(walk, 3 * enough).fills("xcc"));
}

TEST(stacks, at_the_end_of_their_memory_only_new_ones_are_lost) {
    Walk walk(*gbnf_grammar("root ::= \"[\" root \"]\" | \"a\""), 7);
    Rereader small(walk, MaskCache::kVisitsMax, size_t{256} << 10);
    ASSERT_TRUE(small.fills("[[") && small.fills("[[a") && small.fills("[[a]") && small.fills("[[a]]"));
    Matcher deep(small.stacks);
    for (int depth = 0; depth < 100'000 && !small.stacks.lost(deep.at()); depth++) ASSERT_TRUE(deep.accept("["));
    ASSERT_TRUE(small.stacks.lost(deep.at()));
    EXPECT_LT(small.stacks.bytes(), size_t{1} << 20);
    std::vector<uint64_t> bits(walk.trie.words());
    EXPECT_FALSE(small.mask.fill(deep, bits).has_value());
    EXPECT_FALSE(deep.must_end()) << "it has failed, which is no end";
    EXPECT_TRUE(small.fills("[[") && small.fills("[[a") && small.fills("[[a]") && small.fills("[[a]]"));
    small.stacks.check_invariants();
}

TEST(stacks, with_too_many_ways_are_lost_there_and_nowhere_else) {
    // Behind x each of many rules may have begun.
    constexpr int kRules = static_cast<int>(Stacks::kHeadsMax) + 10;
    Limits limits;
    limits.rules = 2 * kRules;
    Rules rules(limits);
    Nfa root = rules.body();
    const Nfa::State x = root.bytes(0, 'x', 'x'), y = root.bytes(0, 'y', 'y'), end = root.add();
    root.bytes(y, 'y', 'y', y);
    root.accept(y);
    root.accept(end);
    for (int r = 0; r < kRules; r++) {
        Nfa one = rules.body();
        one.accept(one.literal(0, "a"));
        root.call(x, rules.add("one of many", std::move(one)), end);
    }
    auto grammar = rules.compile(rules.add("the answer", std::move(root)));
    ASSERT_TRUE(grammar.has_value()) << grammar.error().where << grammar.error().message;
    Stacks stacks(*grammar);
    Matcher lost(stacks), other(stacks);
    ASSERT_TRUE(lost.accept("x") && other.accept("y"));
    EXPECT_TRUE(stacks.lost(lost.at()));
    EXPECT_FALSE(stacks.lost(other.at()));
    EXPECT_TRUE(other.accept("yy") && other.may_end());
    EXPECT_FALSE(other.accept("x"));
    stacks.check_invariants();
}

TEST(matcher, copies_go_back) {
    auto grammar = json_mode();
    Stacks stacks(*grammar);
    Matcher matcher(stacks);
    ASSERT_TRUE(matcher.accept("{\"a\": [1"));
    const Matcher before = matcher;
    EXPECT_FALSE(matcher.accept("}"));
    EXPECT_EQ(matcher, before);
    ASSERT_TRUE(matcher.accept("], \"b\": {}}"));
    EXPECT_TRUE(matcher.may_end() && matcher.must_end());
    matcher = before;
    ASSERT_TRUE(matcher.accept("2]}"));
    EXPECT_TRUE(matcher.must_end());
}

TEST(matcher, tells_bytes_that_are_forced) {
    auto grammar = gbnf_grammar("root ::= \"yes, \" (\"of course\" | \"often\") \"!\"?");
    ASSERT_TRUE(grammar.has_value());
    Stacks stacks(*grammar);
    Matcher matcher(stacks);
    std::array<char, 100> out;
    EXPECT_EQ(matcher.forced(out), "yes, of");
    EXPECT_EQ(matcher.forced(std::span(out).first(3)), "yes");
    ASSERT_TRUE(matcher.accept("yes, oft"));
    EXPECT_EQ(matcher.forced(out), "en");
}

TEST(token_trie, finds_the_longest_token_that_a_text_begins_with) {
    const std::vector<std::string_view> tokens = {"", "a", "ab", "abcd", "b\xC3", "b\xC3\xA9", "\"x", "\"", "ab"};
    const auto trie = TokenTrie::make(tokens, {});
    ASSERT_TRUE(trie.has_value());
    const auto longest = [&](std::string_view text) {
        const auto found = trie->longest(text);
        return found ? tokens[index(*found)] : std::string_view("none");
    };
    EXPECT_EQ(longest("abc"), "ab");
    EXPECT_EQ(longest("abcde"), "abcd");
    EXPECT_EQ(longest("b\xC3\xA9!"), "b\xC3\xA9");
    EXPECT_EQ(longest("b\xC3"), "b\xC3");
    EXPECT_EQ(longest("\"xy"), "\"x");
    EXPECT_EQ(longest("ca"), "none");
    EXPECT_EQ(longest("b"), "none");
    EXPECT_EQ(longest(""), "none");
}

}  // namespace
}  // namespace cadans::grammar
