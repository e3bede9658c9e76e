#include "serve/token_stream.h"

#include <gtest/gtest.h>

#include "serve/dialects/json_writer.h"
#include "serve/testing/test_house.h"

namespace cadans::serve {
namespace {

struct Said {
    std::string content, reasoning;
    bool stopped = false;
    size_t tokens = 0;
};

Said say(const text::Tokenizer& tokenizer, std::string_view text, TokenStreamOptions options, bool cut = false) {
    TokenStream stream(tokenizer.vocabulary(), std::move(options));
    Said out;
    for (const TokenId id : tokenizer.encode(text, {.add_special = false, .parse_special = true})) {
        TextDelta delta = stream.push(id);
        EXPECT_TRUE(is_utf8(delta.content));
        out.content += delta.content;
        out.reasoning += delta.reasoning;
        ++out.tokens;
        if (delta.stopped) {
            out.stopped = true;
            return out;
        }
    }
    TextDelta last = stream.finish(cut);
    out.content += last.content;
    out.reasoning += last.reasoning;
    return out;
}

TEST(token_stream, gives_whole_characters) {
    const text::Tokenizer tokenizer = test_tokenizer();
    const std::string text = "gr\xC3\xBC\xC3\x9F \xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9 \xE5\xAE\xB6";
    EXPECT_EQ(say(tokenizer, text, {}).content, text);
}

TEST(token_stream, drops_half_a_character_at_a_cut) {
    const text::Tokenizer tokenizer = test_tokenizer();
    EXPECT_EQ(say(tokenizer, "ab\xE5\xAE", {}, true).content, "ab");
    EXPECT_EQ(say(tokenizer, "ab\xE5\xAE", {}, false).content.substr(0, 2), "ab");
}

TEST(token_stream, lets_nothing_of_a_stop_string_through) {
    const text::Tokenizer tokenizer = test_tokenizer();
    const Said said = say(tokenizer, "one two END three", {.stop = {"END", "E"}, .reasoning = {}});
    EXPECT_TRUE(said.stopped);
    EXPECT_EQ(said.content, "one two ");
    EXPECT_EQ(say(tokenizer, "abcDEFGHIx", {.stop = {"DEFGHIJ"}, .reasoning = {}}).content, "abcDEFGHIx");
}

TEST(token_stream, parts_thinking_from_answer) {
    const text::Tokenizer tokenizer = test_tokenizer();
    const text::ReasoningStyle style{"<think>", "</think>", false};
    const Said said = say(tokenizer, "<think>hm</think>yes", {.stop = {}, .reasoning = style});
    EXPECT_EQ(said.reasoning, "hm");
    EXPECT_EQ(said.content, "yes");
    const Said inside = say(tokenizer, "hm</think>yes", {.stop = {}, .reasoning = style, .starts_inside = true});
    EXPECT_EQ(inside.reasoning, "hm");
    EXPECT_EQ(inside.content, "yes");
}

TEST(token_stream, names_tokens_that_are_no_text_by_their_bytes) {
    const text::Tokenizer tokenizer = test_tokenizer();
    EXPECT_EQ(token_name(tokenizer.vocabulary(), TokenId{'a'}), "a");
    EXPECT_EQ(token_name(tokenizer.vocabulary(), TokenId{0xFF}), "bytes:\\xff");
}

TEST(token_stream, counts_characters_not_bytes) { EXPECT_EQ(count_characters("a\xC3\xBC\xF0\x9F\x98\x80"), 3u); }

}  // namespace
}  // namespace cadans::serve
