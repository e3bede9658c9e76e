// What answers are held to, from a client's form down to the tokens of a vocabulary.
#include "serve/forms/answer_grammar.h"

#include <gtest/gtest.h>

#include <array>

#include "base/random.h"
#include "grammar/gbnf.h"
#include "serve/forms/grammar_shelf.h"
#include "text/detokenizer.h"
#include "text/test_vocabulary.h"
#include "text/tokenizer.h"

namespace cadans::serve {
namespace {

using nlohmann::ordered_json;
using Kind = TextForm::Kind;

text::Vocabulary vocabulary_of(text::VocabularyData data) {
    auto made = text::Vocabulary::make(std::move(data));
    check(made.has_value(), "the test vocabulary is good");
    return *std::move(made);
}

const text::ReasoningStyle kThink{"<think>", "</think>", false};

struct Drawn {
    std::string text;
    bool complete = false, ended = false;
};

/// Draws evenly from what may come; `prefer_end`: an end is taken where it may come.
Drawn draw(Constraint& constraint, const text::Vocabulary& vocabulary, uint64_t seed, uint32_t most = 400) {
    Drawn out;
    std::vector<uint64_t> bits((vocabulary.size() + 63) / 64 + 1);
    text::Detokenizer detokenizer(vocabulary, {.skip_control = false});
    ConstraintState at = constraint.start();
    for (uint32_t n = 0; n < most && !out.complete && !out.ended; n++) {
        EXPECT_TRUE(constraint.allowed(at, bits)) << out.text;
        std::vector<TokenId> allowed;
        for (uint32_t id = 0; id < bits.size() * 64; id++)
            if (bits[id / 64] >> (id % 64) & 1) allowed.push_back(TokenId{id});
        EXPECT_FALSE(allowed.empty());
        EXPECT_LT(index(allowed.back()), vocabulary.size()) << "rows behind the vocabulary are never drawn";
        const TokenId token = allowed[mix64(seed * 1000 + n) % allowed.size()];
        if (vocabulary.ends_generation(token)) {
            out.ended = true;
            break;
        }
        EXPECT_FALSE(vocabulary.is_padding(token));
        out.text += detokenizer.push(token);
        at = constraint.after(at, token);
        out.complete = constraint.complete(at);
    }
    return out;
}

std::shared_ptr<Constraint> made(GrammarShelf& shelf, const TextForm& form, Lead lead = Lead::none) {
    auto got = shelf.get(form, {}, lead);
    EXPECT_TRUE(got.has_value()) << got.error().message;
    return got ? *got : nullptr;
}

TEST(answer_grammar, answers_over_every_kind_of_vocabulary_are_of_their_form) {
    const ordered_json schema = ordered_json::parse(
        R"({"type": "object", "properties": {"name": {"enum": ["a", "b\u00e9"]}, "n": {"type": "integer", "minimum": 0, "maximum": 99}},
            "required": ["name", "n"], "additionalProperties": false})");
    for (const bool bpe : {true, false}) {
        const text::Vocabulary vocabulary = vocabulary_of(bpe ? text::small_bpe() : text::small_sentencepiece());
        GrammarShelf shelf(vocabulary, std::nullopt);
        const auto constraint = made(shelf, {.kind = Kind::schema, .schema = schema, .field = "f"});
        for (uint64_t seed = 0; seed < 100; seed++) {
            const Drawn drawn = draw(*constraint, vocabulary, seed);
            ASSERT_TRUE(drawn.complete || drawn.ended) << drawn.text;
            const ordered_json value = ordered_json::parse(drawn.text, nullptr, false);
            ASSERT_TRUE(value.is_object() && value.size() == 2) << drawn.text;
            EXPECT_LE(value["n"].get<int>(), 99);
            EXPECT_TRUE(value["name"] == "a" || value["name"] == "b\u00e9") << drawn.text;
        }
        const auto choice = made(shelf, {.kind = Kind::choice, .choices = {"hello", "h\u00e9"}, .field = "f"});
        for (uint64_t seed = 0; seed < 20; seed++) {
            const Drawn drawn = draw(*choice, vocabulary, seed);
            EXPECT_TRUE(drawn.complete && (drawn.text == "hello" || drawn.text == "h\u00e9")) << drawn.text;
        }
    }
}

TEST(answer_grammar, the_end_comes_only_where_the_text_may_end) {
    const text::Vocabulary vocabulary = vocabulary_of(text::small_bpe());
    GrammarShelf shelf(vocabulary, std::nullopt);
    const auto constraint = made(shelf, {.kind = Kind::regex, .source = "a{2,4}", .field = "regex"});
    std::vector<uint64_t> bits((vocabulary.size() + 63) / 64);
    ConstraintState at = constraint->start();
    const TokenId end = vocabulary.end_of_generation().front();
    for (int letters = 0; letters < 4; letters++) {
        ASSERT_TRUE(constraint->allowed(at, bits));
        EXPECT_EQ(bits[index(end) / 64] >> (index(end) % 64) & 1, letters >= 2) << letters;
        EXPECT_EQ(constraint->after(at, end), at) << "an end leads nowhere else";
        EXPECT_FALSE(constraint->complete(at));
        at = constraint->after(at, *vocabulary.find("a"));
    }
    EXPECT_TRUE(constraint->complete(at));
}

TEST(answer_grammar, what_must_come_is_told_in_tokens_and_nothing_where_there_is_a_choice) {
    const text::Vocabulary vocabulary = vocabulary_of(text::small_bpe());
    GrammarShelf shelf(vocabulary, std::nullopt);
    const auto constraint = made(shelf, {.kind = Kind::regex, .source = "(hello he|x)(\xC3\xA9|y)", .field = "regex"});
    std::array<TokenId, 15> out;
    EXPECT_EQ(constraint->forced(constraint->start(), out), 0u);
    const ConstraintState inside = constraint->after(constraint->start(), *vocabulary.find("h"));
    const uint32_t count = constraint->forced(inside, out);
    ASSERT_GT(count, 1u);
    std::string spelled;
    ConstraintState at = inside;
    std::vector<uint64_t> bits((vocabulary.size() + 63) / 64);
    for (const TokenId token : std::span(out).first(count)) {
        ASSERT_TRUE(constraint->allowed(at, bits) && (bits[index(token) / 64] >> (index(token) % 64) & 1) != 0);
        spelled += vocabulary.bytes(token);
        at = constraint->after(at, token);
    }
    EXPECT_EQ(spelled, "ello he");
    EXPECT_EQ(constraint->forced(inside, std::span(out).first(1)), 1u);
    const ConstraintState done = constraint->after(at, *vocabulary.find("y"));
    EXPECT_EQ(constraint->forced(done, out), 0u) << "the end is no text";
}

TEST(answer_grammar, thinking_comes_first_and_the_form_behind_it) {
    const text::Vocabulary vocabulary = vocabulary_of(text::small_bpe());
    GrammarShelf shelf(vocabulary, kThink);
    const TextForm form{.kind = Kind::regex, .source = "[xy]{3}", .field = "regex"};
    const auto rest = made(shelf, form, Lead::rest), maybe = made(shelf, form, Lead::thinking);
    const auto takes = [&](Constraint& constraint, std::string_view text) {
        ConstraintState at = constraint.start();
        std::vector<uint64_t> bits((vocabulary.size() + 63) / 64);
        auto tokenizer = text::Tokenizer::make(vocabulary_of(text::small_bpe()));
        for (const TokenId token : tokenizer->encode(text, {.add_special = false, .parse_special = true})) {
            if (!constraint.allowed(at, bits) || (bits[index(token) / 64] >> (index(token) % 64) & 1) == 0)
                return false;
            at = constraint.after(at, token);
        }
        return constraint.complete(at);
    };
    EXPECT_TRUE(takes(*rest, "hello, \xC3\xA9 </think xyz</think>\n\nxyx"));
    EXPECT_FALSE(takes(*rest, "xyx"));
    EXPECT_FALSE(takes(*rest, "a</think>xyz"));
    EXPECT_TRUE(takes(*maybe, "<think>hello</think>xyx"));
    EXPECT_TRUE(takes(*maybe, "xyx"));
    EXPECT_FALSE(takes(*maybe, "hello</think>xyx"));
    for (uint64_t seed = 0; seed < 10; seed++)
        EXPECT_FALSE(draw(*rest, vocabulary, seed, 60).ended) << "no end inside of thinking";
}

TEST(answer_grammar, is_compiled_once_for_one_form) {
    const text::Vocabulary vocabulary = vocabulary_of(text::small_bpe());
    GrammarShelf shelf(vocabulary, kThink);
    const TextForm form{.kind = Kind::regex, .source = "a+", .field = "regex"};
    const auto first = made(shelf, form);
    EXPECT_EQ(made(shelf, form), first);
    EXPECT_NE(made(shelf, form, Lead::rest), first);
    EXPECT_NE(made(shelf, {.kind = Kind::choice, .choices = {"a+"}, .field = "regex"}), first);
    for (int other = 0; other < 40; other++)
        made(shelf, {.kind = Kind::regex, .source = "b{" + std::to_string(other + 1) + "}", .field = "regex"});
    EXPECT_NE(made(shelf, form), first) << "kept no longer, while its answers still use it";
    EXPECT_EQ(made(shelf, {.kind = Kind::any}), nullptr);
}

TEST(answer_grammar, a_refusal_is_found_once_and_names_each_askers_field) {
    const text::Vocabulary vocabulary = vocabulary_of(text::small_bpe());
    GrammarShelf shelf(vocabulary, std::nullopt);
    const auto refused = [&](const char* source, const char* field) {
        const auto got = shelf.get({.kind = Kind::regex, .source = source, .field = field}, {}, Lead::none);
        EXPECT_FALSE(got.has_value());
        return got ? std::string() : got.error().where;
    };
    for (int again = 0; again < 3; again++) EXPECT_EQ(refused("a(?<=x)", "regex"), "regex");
    EXPECT_EQ(shelf.compiled(), 1u);
    EXPECT_EQ(refused("a(?<=x)", "guided_regex"), "guided_regex");
    EXPECT_EQ(shelf.compiled(), 2u);
    const auto good = made(shelf, {.kind = Kind::regex, .source = "a+", .field = "regex"});
    for (int other = 0; other < 40; other++)
        EXPECT_EQ(refused(("b(?<=" + std::to_string(other) + ")").c_str(), "regex"), "regex");
    EXPECT_EQ(shelf.compiled(), 43u);
    EXPECT_EQ(made(shelf, {.kind = Kind::regex, .source = "a+", .field = "regex"}), good)
        << "refusals push no grammar out";
    EXPECT_EQ(refused("a(?<=x)", "regex"), "regex");
    EXPECT_EQ(shelf.compiled(), 44u) << "they are not kept without end";
}

TEST(answer_grammar, white_space_behind_thinking_is_the_texts_where_it_may_begin_so) {
    const text::Vocabulary vocabulary = vocabulary_of(text::small_bpe());
    GrammarShelf shelf(vocabulary, kThink);
    const auto of = [&](const char* source) {
        const auto got = shelf.get({.kind = Kind::regex, .source = source, .field = "regex"}, {}, Lead::rest);
        EXPECT_TRUE(got.has_value());
        return *got;
    };
    const auto spaced = of("\\n{0,2}[xy]"), plain = of("[xy]");
    EXPECT_TRUE(spaced->spaced());
    EXPECT_FALSE(plain->spaced());
    auto tokenizer = text::Tokenizer::make(vocabulary_of(text::small_bpe()));
    const auto takes = [&](Constraint& constraint, std::string_view text) {
        ConstraintState at = constraint.start();
        std::vector<uint64_t> bits((vocabulary.size() + 63) / 64);
        for (const TokenId token : tokenizer->encode(text, {.add_special = false, .parse_special = true})) {
            if (!constraint.allowed(at, bits) || (bits[index(token) / 64] >> (index(token) % 64) & 1) == 0)
                return false;
            at = constraint.after(at, token);
        }
        return constraint.complete(at);
    };
    EXPECT_TRUE(takes(*spaced, "a</think>\n\nx"));
    EXPECT_FALSE(takes(*spaced, "a</think>\n\n\nx")) << "whose would the third be";
    EXPECT_TRUE(takes(*plain, "a</think>\n\n\nx"));
}

TEST(answer_grammar, forms_of_other_parts_are_other_forms) {
    const text::Vocabulary vocabulary = vocabulary_of(text::small_bpe());
    GrammarShelf shelf(vocabulary, std::nullopt);
    // What one form says and what two parts of another say could be the same bytes.
    ToolUse use;
    use.choice = ToolChoice::automatic;
    use.tools = {{.name = "f", .parameters = ordered_json::object(), .field = "tools[0]"}};
    const auto with_tools = shelf.get({.kind = Kind::regex, .source = "a", .field = "regex"}, use, Lead::none);
    ASSERT_TRUE(with_tools.has_value()) << with_tools.error().message;
    for (const char* many : {"many", "one"}) {
        const std::string source = "a\ntools " + std::string(many) + "\nf{}";
        const auto other = shelf.get({.kind = Kind::regex, .source = source, .field = "regex"}, {}, Lead::none);
        EXPECT_TRUE(!other || *other != *with_tools) << "it is no pattern, and no call of f";
    }
}

TEST(answer_grammar, the_shelf_has_a_budget_and_keeps_the_last) {
    const text::Vocabulary vocabulary = vocabulary_of(text::small_bpe());
    const TextForm a{.kind = Kind::regex, .source = "a+", .field = "regex"};
    const TextForm b{.kind = Kind::regex, .source = "b+", .field = "regex"};
    GrammarShelf small(vocabulary, std::nullopt, CallStyle::tagged, 1), large(vocabulary, std::nullopt);
    const auto first = made(small, a), kept = made(large, a);
    EXPECT_EQ(made(small, a), first);
    made(small, b);
    made(large, b);
    EXPECT_EQ(first.use_count(), 1) << "whoever answers under it has it, and nobody else";
    EXPECT_NE(made(small, a), first);
    EXPECT_EQ(made(large, a), kept);
    large.tidy();
    EXPECT_EQ(made(large, a), kept) << "what is in its bounds stays";
}

TEST(answer_grammar, when_an_answer_ends_the_shelf_keeps_its_budget_again) {
    const text::Vocabulary vocabulary = vocabulary_of(text::small_bpe());
    constexpr size_t kBudget = size_t{1} << 20;
    GrammarShelf shelf(vocabulary, std::nullopt, CallStyle::tagged, kBudget);
    const TextForm nested{.kind = Kind::gbnf, .source = "root ::= \"[\" root \"]\" | \"a\"", .field = "grammar"};
    const auto idle = made(shelf, {.kind = Kind::regex, .source = "a+", .field = "regex"});
    const auto grown = shelf.get(nested, {}, Lead::none);
    ASSERT_TRUE(grown.has_value());
    std::vector<uint64_t> bits((vocabulary.size() + 63) / 64);
    ConstraintState at = (*grown)->start();
    for (int depth = 0; depth < 100'000 && (*grown)->bytes() <= kBudget; depth++) {
        ASSERT_TRUE((*grown)->allowed(at, bits));
        at = (*grown)->after(at, *vocabulary.find("["));
    }
    EXPECT_GT((*grown)->bytes(), kBudget);
    EXPECT_GT(idle.use_count(), 1) << "while it answers nobody looks";
    shelf.tidy();
    EXPECT_EQ(idle.use_count(), 1);
    EXPECT_EQ(made(shelf, nested), *grown) << "the one asked for last stays";
}

TEST(answer_grammar, an_answer_that_needs_too_much_memory_fails_and_no_other) {
    const text::Vocabulary vocabulary = vocabulary_of(text::small_bpe());
    auto tokens = GrammarTokens::make(vocabulary, {});
    ASSERT_TRUE(tokens.has_value());
    auto compiled = grammar::gbnf_grammar("root ::= \"[\" root \"]\" | \"a\"");
    ASSERT_TRUE(compiled.has_value());
    AnswerGrammar constraint(*std::move(compiled), *tokens, false, size_t{256} << 10);
    std::vector<uint64_t> bits((vocabulary.size() + 63) / 64);
    const TokenId open = *vocabulary.find("["), close = *vocabulary.find("]"), a = *vocabulary.find("a");
    const auto short_answer = [&] {
        ConstraintState at = constraint.start();
        for (const TokenId token : {open, a, close}) {
            if (!constraint.allowed(at, bits) || (bits[index(token) / 64] >> (index(token) % 64) & 1) == 0)
                return false;
            at = constraint.after(at, token);
        }
        return constraint.complete(at);
    };
    EXPECT_TRUE(short_answer());
    ConstraintState deep = constraint.start();
    int depth = 0;
    for (; depth < 100'000 && constraint.allowed(deep, bits); depth++) {
        deep = constraint.after(deep, open);
        ASSERT_FALSE(constraint.complete(deep));
    }
    EXPECT_LT(depth, 100'000);
    EXPECT_LT(constraint.bytes(), size_t{2} << 20);
    EXPECT_FALSE(constraint.allowed(deep, bits)) << "it stays so";
    EXPECT_TRUE(short_answer());
}

TEST(answer_grammar, a_vocabulary_that_cannot_write_every_byte_writes_what_it_can) {
    text::VocabularyData data = text::small_bpe();
    for (const unsigned byte : {0x04, 0xF1, 0x62}) data.token_types[byte] = 5;  // unused
    const text::Vocabulary vocabulary = vocabulary_of(std::move(data));
    GrammarShelf shelf(vocabulary, std::nullopt);
    const auto constraint = made(shelf, {.kind = Kind::json_object, .field = "response_format"});
    for (uint64_t seed = 0; seed < 50; seed++) {
        const Drawn drawn = draw(*constraint, vocabulary, seed, 100);
        EXPECT_EQ(drawn.text.find('b'), std::string::npos) << drawn.text;
    }
    const auto choice = made(shelf, {.kind = Kind::choice, .choices = {"abe", "axe"}, .field = "f"});
    for (uint64_t seed = 0; seed < 10; seed++) EXPECT_EQ(draw(*choice, vocabulary, seed).text, "axe");
}

TEST(answer_grammar, a_form_that_a_vocabulary_cannot_write_is_refused_in_words) {
    text::VocabularyData data = text::small_bpe();
    data.token_types['{'] = 5;  // unused
    const text::Vocabulary vocabulary = vocabulary_of(std::move(data));
    GrammarShelf shelf(vocabulary, std::nullopt);
    const auto got = shelf.get({.kind = Kind::json_object, .field = "response_format"}, {}, Lead::none);
    ASSERT_FALSE(got.has_value());
    EXPECT_EQ(got.error().code, ErrorCode::bad_input);
    EXPECT_EQ(got.error().where, "response_format");
    EXPECT_NE(got.error().message.find("vocabulary"), std::string::npos) << got.error().message;
}

TEST(answer_grammar, refusals_name_field_and_place) {
    const text::Vocabulary vocabulary = vocabulary_of(text::small_bpe());
    GrammarShelf shelf(vocabulary, std::nullopt);
    struct Bad {
        TextForm form;
        const char* where;
        const char* word;
    };
    for (const Bad& bad :
         {Bad{{.kind = Kind::gbnf, .source = "root ::= a\na ::= \"x\" [b", .field = "grammar"}, "grammar", "line 2"},
          Bad{{.kind = Kind::gbnf, .source = "root ::= \"a\" b\nb ::= b \"x\" | \"y\"", .field = "grammar"},
              "grammar",
              "line 2"},
          Bad{{.kind = Kind::lark, .source = "start: a\na: \"x\" [b", .field = "guided_grammar"},
              "guided_grammar",
              "line 2"},
          Bad{{.kind = Kind::regex, .source = "a(?<=x)", .field = "regex"}, "regex", "at byte"},
          Bad{{.kind = Kind::regex, .source = "", .field = "regex"}, "regex", "empty"},
          Bad{{.kind = Kind::choice, .choices = {""}, .field = "guided_choice"}, "guided_choice", "empty"},
          Bad{{.kind = Kind::schema, .schema = {{"pattern", "^+a$"}}, .field = "format"},
              "format#/pattern",
              "format#/pattern: "},
          Bad{{.kind = Kind::schema, .schema = false, .field = "format"}, "format#", "format#: "},
          Bad{{.kind = Kind::regex, .source = std::string(300'000, 'a'), .field = "regex"}, "regex", "allowed"}}) {
        const auto got = shelf.get(bad.form, {}, Lead::none);
        ASSERT_FALSE(got.has_value()) << bad.word;
        EXPECT_EQ(got.error().where, bad.where) << got.error().message;
        EXPECT_NE(got.error().message.find(bad.word), std::string::npos) << got.error().message;
    }
}

}  // namespace
}  // namespace cadans::serve
