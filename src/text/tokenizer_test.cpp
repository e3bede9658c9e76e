#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/random.h"
#include "text/detokenizer.h"
#include "text/round_trip.h"
#include "text/test_vocabulary.h"
#include "text/utf8.h"

namespace cadans::text {
namespace {

Tokenizer make(VocabularyData data) {
    auto vocabulary = Vocabulary::make(std::move(data));
    check(vocabulary.has_value(), "the test's vocabulary is good");
    auto tokenizer = Tokenizer::make(*std::move(vocabulary));
    check(tokenizer.has_value(), "the test's tokenizer is good");
    return *std::move(tokenizer);
}

std::vector<std::string> spellings(const Tokenizer& t, const std::vector<TokenId>& ids) {
    std::vector<std::string> out;
    for (const TokenId id : ids) out.emplace_back(t.vocabulary().spelling(id));
    return out;
}

std::vector<std::string> encode(const Tokenizer& t, std::string_view text, EncodeOptions options = {}) {
    return spellings(t, t.encode(text, options));
}

bool has_control(const Tokenizer& t, const std::vector<TokenId>& ids) {
    for (const TokenId id : ids) {
        if (t.vocabulary().is_control(id)) return true;
    }
    return false;
}

using Spellings = std::vector<std::string>;

TEST(tokenizer, merges_the_best_rank_first) {
    const Tokenizer t = make(small_bpe());
    EXPECT_EQ(encode(t, "hello hello"), (Spellings{"hello", "Ġhello"}));
    EXPECT_EQ(encode(t, "helllo"), (Spellings{"hell", "l", "o"}));
    EXPECT_EQ(encode(t, ""), Spellings{});
}

TEST(tokenizer, fewest_tokens_is_never_more_than_there_are) {
    for (const VocabularyData& data : {small_bpe(), small_bpe("llama-bpe"), small_sentencepiece()}) {
        const Tokenizer t = make(data);
        for (uint32_t id = 0; id < t.vocabulary().size(); id++) {
            const std::string text(t.vocabulary().bytes(TokenId{id}));
            std::string often;
            for (int i = 0; i < 20; i++) often += text;
            EXPECT_LE(t.fewest_tokens(often.size()),
                      t.encode(often, {.add_special = false, .parse_special = true}).size())
                << text;
        }
    }
}

TEST(tokenizer, names_a_pre_tokenizer_that_it_does_not_know) {
    auto vocabulary = Vocabulary::make(small_bpe("from-the-future"));
    const auto made = Tokenizer::make(*std::move(vocabulary));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::unsupported);
    EXPECT_NE(made.error().message.find("from-the-future"), std::string::npos);
}

TEST(tokenizer, control_tokens_in_text_stay_text_unless_asked) {
    const Tokenizer t = make(small_bpe());
    EXPECT_FALSE(has_control(t, t.encode("a<|im_end|>b")));
    EXPECT_EQ(encode(t, "a<|im_end|>b", {.parse_special = true}), (Spellings{"a", "<|im_end|>", "b"}));
    EXPECT_EQ(encode(t, "<think>"), Spellings{"<think>"});  // user-defined: text to the makers
}

TEST(tokenizer, the_longest_name_at_the_first_place_wins) {
    auto data = small_bpe();
    for (const char* name : {"<a>", "<a><b>"}) {
        data.tokens.push_back(name);
        data.token_types.push_back(3);
    }
    const Tokenizer t = make(data);
    EXPECT_EQ(encode(t, "<a><b><a>", {.parse_special = true}), (Spellings{"<a><b>", "<a>"}));
}

TEST(tokenizer, only_trusted_segments_yield_control_tokens) {
    const Tokenizer t = make(small_bpe());
    const Segment open{"<|im_start|>", true}, close{"<|im_end|>", true}, content{"<|im_end|>", false};
    EXPECT_EQ(spellings(t, t.encode(std::vector{open, close})), (Spellings{"<|im_start|>", "<|im_end|>"}));
    EXPECT_FALSE(has_control(t, t.encode(std::vector{content})));
    // Not when half of the name is the client's, in whatever order, nor when it is cut in two.
    for (const auto& [left, right] : {std::pair{true, false}, {false, true}, {false, false}}) {
        EXPECT_FALSE(has_control(t, t.encode(std::vector<Segment>{{"<|im_", left}, {"end|>", right}})));
    }
    EXPECT_TRUE(has_control(t, t.encode(std::vector<Segment>{{"<|im_", true}, {"end|>", true}})));
}

TEST(tokenizer, markers_of_a_template_cannot_be_forged_either) {
    const Tokenizer t = make(small_bpe());
    const auto markers = t.markers_of("{{ '<think>\\n\\n' }}");
    EXPECT_EQ(spellings(t, markers), Spellings{"<think>"});  // a run of newlines is no markup
    EXPECT_EQ(spellings(t, t.encode(std::vector<Segment>{{"<think>", true}}, markers)), Spellings{"<think>"});
    EXPECT_GT(t.encode(std::vector<Segment>{{"<think>", false}}, markers).size(), 1u);
}

TEST(tokenizer, segments_of_harmless_text_read_as_one_text) {
    const Tokenizer t = make(small_bpe());
    const std::vector<Segment> cut = {{"hel", true}, {"lo", false}, {" hello\n", true}, {"\nhello", false}};
    EXPECT_EQ(t.encode(cut), t.encode("hello hello\n\nhello"));
}

TEST(tokenizer, the_begin_token_is_never_doubled_in_a_chat) {
    const Tokenizer t = make(small_sentencepiece());
    const std::vector<Segment> with = {{"<s>", true}, {" hello", false}}, without = {{" hello", false}};
    EXPECT_EQ(spellings(t, t.encode(with)).front(), "<s>");
    EXPECT_NE(spellings(t, t.encode(with))[1], "<s>");
    EXPECT_EQ(spellings(t, t.encode(without)).front(), "<s>");
}

TEST(tokenizer, sentencepiece_grows_pieces_and_falls_back_to_bytes) {
    const Tokenizer t = make(small_sentencepiece());
    EXPECT_EQ(encode(t, "hello", {.add_special = false}), Spellings{"▁hello"});
    EXPECT_EQ(encode(t, "hello\n", {.add_special = false}), (Spellings{"▁hello", "<0x0A>"}));
    EXPECT_EQ(encode(t, "é", {.add_special = false}), (Spellings{"▁", "<0xC3>", "<0xA9>"}));
    // Pieces could be glued to the name of a control token; they never are.
    EXPECT_EQ(encode(t, "<s>", {.add_special = false}), (Spellings{"▁", "<s", ">"}));
}

TEST(tokenizer, bytes_that_are_no_text_come_back_unchanged) {
    const Tokenizer bpe = make(small_bpe()), pieces = make(small_sentencepiece());
    for (const std::string_view text :
         {"\xFF\xFE", "a\x80z", "\xE2\x82", "\xED\xA0\x80", "\xC0\xAF", "\xF4\x90\x80\x80"}) {
        for (const Tokenizer* t : {&bpe, &pieces}) {
            std::string bytes;
            for (const TokenId id : t->encode(text, {.add_special = false})) bytes += t->vocabulary().bytes(id);
            if (t == &pieces) bytes.erase(0, 1);
            EXPECT_EQ(bytes, text);
        }
    }
}

TEST(tokenizer, composes_accents_where_its_makers_did) {
    const std::string decomposed = "e\xCC\x81", composed = "\xC3\xA9";
    EXPECT_EQ(encode(make(small_bpe("qwen2")), decomposed), encode(make(small_bpe("qwen2")), composed));
    EXPECT_NE(encode(make(small_bpe("llama-bpe")), decomposed), encode(make(small_bpe("llama-bpe")), composed));
}

TEST(tokenizer, no_text_makes_it_slow) {
    // Each of these is quadratic or worse for a naive merge loop, a backtracking pattern or a sort of marks.
    std::string marks, mixed;
    for (int i = 0; i < 100'000; i++) {
        marks += i % 2 == 0 ? "\xCC\x95" : "\xCC\xA7";
        mixed += i % 3 == 0 ? " " : i % 3 == 1 ? "\n" : "'";
    }
    const std::vector<std::string> texts = {std::string(300'000, 'a'),
                                            std::string(300'000, ' '),
                                            std::string(300'000, '\n'),
                                            std::string(300'000, 'A'),
                                            std::string(300'000, '<'),
                                            std::string(300'000, '1'),
                                            marks,
                                            mixed};
    const auto start = std::chrono::steady_clock::now();
    for (const char* pre : {"qwen2", "llama-bpe", "gpt-4o", "tekken", "smollm", "deepseek-v3", "default", "qwen35"}) {
        const Tokenizer t = make(small_bpe(pre));
        for (const auto& text : texts) EXPECT_GT(t.encode(text).size(), 0u);
    }
    const Tokenizer t = make(small_sentencepiece());
    for (const auto& text : texts) EXPECT_GT(t.encode(text).size(), 0u);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

/// Goal: no bytes crash it, get lost, or become a control token. Method: pieces of hostile text, put together by seed.
TEST(tokenizer, any_bytes_survive) {
    const std::vector<std::string> pieces = {"hello",
                                             " ",
                                             "  ",
                                             "\n",
                                             "<|im_end|>",
                                             "<s>",
                                             "<think>",
                                             "'s",
                                             "'LL",
                                             "123",
                                             "é",
                                             "e\xCC\x81",
                                             "漢",
                                             "\xF0\x9F\x98\x80",
                                             "\xE2\x96\x81",
                                             "\xFF",
                                             "\xE2\x82",
                                             "\xED\xA0\x80",
                                             "A",
                                             "ß",
                                             "/",
                                             "\r\n",
                                             "\t",
                                             std::string(1, '\0'),
                                             "<0x0A>",
                                             "\xC5\xBF"};
    for (uint64_t seed = 0; seed < 3000; seed++) {
        std::string text;
        uint64_t random = mix64(seed);
        for (uint64_t i = 0, n = random % 12; i < n; i++) text += pieces[(random = mix64(random)) % pieces.size()];
        if (seed % 3 == 0 && !text.empty()) text[random % text.size()] = static_cast<char>(random >> 8);
        check_round_trip(text);
    }
}

TEST(detokenizer, never_splits_a_character) {
    const Tokenizer t = make(small_bpe());
    const std::string text = "a\xF0\x9F\x98\x80é漢z";
    Detokenizer detokenizer(t.vocabulary());
    std::string whole;
    for (const TokenId id : t.encode(text)) {
        const std::string piece = detokenizer.push(id);
        EXPECT_EQ(piece, utf8_repaired(piece));
        EXPECT_EQ(utf8_unfinished(piece), 0u);
        whole += piece;
    }
    EXPECT_EQ(whole + detokenizer.finish(), text);
}

TEST(detokenizer, broken_bytes_become_replacement_characters) {
    const Tokenizer t = make(small_bpe());
    Detokenizer detokenizer(t.vocabulary());
    EXPECT_EQ(detokenizer.push(TokenId{0xE2}), "");
    EXPECT_TRUE(detokenizer.holds_back());
    EXPECT_EQ(detokenizer.push(TokenId{'a'}),
              "\xEF\xBF\xBD"
              "a");
    EXPECT_EQ(detokenizer.push(TokenId{0xF0}), "");
    EXPECT_EQ(detokenizer.finish(), "\xEF\xBF\xBD");
    EXPECT_EQ(detokenizer.push(TokenId{1'000'000}), "");
}

TEST(detokenizer, control_tokens_show_only_when_asked) {
    const Tokenizer t = make(small_bpe());
    const auto ids = t.encode("a<|im_end|>", {.parse_special = true});
    EXPECT_EQ(detokenize(t.vocabulary(), ids), "a");
    EXPECT_EQ(detokenize(t.vocabulary(), ids, {.skip_control = false}), "a<|im_end|>");
}

TEST(detokenizer, the_space_that_the_tokenizer_put_in_front_goes_again) {
    const Tokenizer t = make(small_sentencepiece());
    const auto ids = t.encode("hello");
    EXPECT_EQ(detokenize(t.vocabulary(), ids, {.at_start = true}), "hello");
    EXPECT_EQ(detokenize(t.vocabulary(), ids), " hello");
    EXPECT_EQ(detokenize(t.vocabulary(), t.encode(" hello"), {.at_start = true}), " hello");
}

TEST(utf8, tells_characters_from_stray_bytes) {
    EXPECT_EQ(utf8_at("é", 0).code_point, 0xE9u);
    EXPECT_EQ(utf8_at("\xF4\x8F\xBF\xBF", 0).code_point, 0x10FFFFu);
    for (const std::string_view bad :
         {"\x80", "\xC1\x81", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8", "\xE2\x82"}) {
        EXPECT_FALSE(utf8_at(bad, 0).valid());
        EXPECT_EQ(utf8_at(bad, 0).bytes, 1u);
    }
    EXPECT_EQ(utf8_repaired("a\xE2\x82z\xFF"), "a\xEF\xBF\xBDz\xEF\xBF\xBD");
    EXPECT_EQ(utf8_unfinished("a\xE2\x82"), 2u);
    EXPECT_EQ(utf8_unfinished("a\xE2\x28"), 0u);
    EXPECT_EQ(utf8_length("aé漢\xFF"), 4u);
}

}  // namespace
}  // namespace cadans::text
