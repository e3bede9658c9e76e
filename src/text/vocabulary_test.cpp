#include "text/vocabulary.h"

#include <gtest/gtest.h>

#include <limits>

#include "text/test_vocabulary.h"

namespace cadans::text {
namespace {

void expect_refused(VocabularyData data, const std::string& where) {
    const auto made = Vocabulary::make(std::move(data));
    ASSERT_FALSE(made) << where;
    EXPECT_EQ(made.error().where, where);
    EXPECT_FALSE(made.error().message.empty());
}

TEST(vocabulary, refuses_what_disagrees_with_itself_and_names_the_field) {
    auto data = small_bpe();
    data.model = "bert";
    expect_refused(data, "tokenizer.ggml.model");
    data = small_bpe();
    data.tokens.clear();
    expect_refused(data, "tokenizer.ggml.tokens");
    data = small_bpe();
    data.tokens[3].assign(4096, 'x');
    expect_refused(data, "tokenizer.ggml.tokens");
    data = small_bpe();
    data.token_types.pop_back();
    expect_refused(data, "tokenizer.ggml.token_type");
    data = small_bpe();
    data.token_types[0] = 7;
    expect_refused(data, "tokenizer.ggml.token_type");
    data = small_bpe();
    data.scores = {1.0f};
    expect_refused(data, "tokenizer.ggml.scores");
    data = small_sentencepiece();
    data.scores.clear();
    expect_refused(data, "tokenizer.ggml.scores");
    data = small_sentencepiece();
    data.scores[5] = std::numeric_limits<float>::quiet_NaN();
    expect_refused(data, "tokenizer.ggml.scores");
}

TEST(vocabulary, refuses_ids_beyond_its_tokens) {
    for (const auto& [member, name] : {std::pair{&VocabularyData::bos, "bos"},
                                       {&VocabularyData::eos, "eos"},
                                       {&VocabularyData::eot, "eot"},
                                       {&VocabularyData::eom, "eom"},
                                       {&VocabularyData::unknown, "unknown"},
                                       {&VocabularyData::padding, "padding"}}) {
        auto data = small_bpe();
        data.*member = static_cast<uint32_t>(data.tokens.size());
        expect_refused(data, std::string("tokenizer.ggml.") + name + "_token_id");
        data.*member = 0xFFFFFFFFu;
        expect_refused(data, std::string("tokenizer.ggml.") + name + "_token_id");
    }
}

TEST(vocabulary, refuses_merges_of_tokens_it_does_not_have) {
    for (const char* merge : {"", " ", "he", "h ", "x y", "h zz", "zz h"}) {
        auto data = small_bpe();
        data.merges.push_back(merge);
        expect_refused(data, "tokenizer.ggml.merges");
    }
}

TEST(vocabulary, a_merge_never_makes_a_control_token) {
    auto data = small_bpe();
    data.merges.push_back("h i");
    data.tokens.push_back("hi");
    data.token_types.push_back(3);
    const auto made = Vocabulary::make(data);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->find_merge(*made->find("h"), *made->find("i")), nullptr);
    EXPECT_NE(made->find_merge(*made->find("h"), *made->find("e")), nullptr);
}

TEST(vocabulary, knows_its_tokens_by_bytes_and_kind) {
    const auto v = Vocabulary::make(small_bpe());
    ASSERT_TRUE(v);
    EXPECT_EQ(v->bytes(*v->find("Ġhello")), " hello");
    EXPECT_EQ(v->bytes(*v->find("<|im_end|>")), "<|im_end|>");
    EXPECT_TRUE(v->is_control(*v->find("<|im_end|>")));
    EXPECT_FALSE(v->is_control(*v->find("<think>")));
    EXPECT_TRUE(v->is_padding(*v->find("[PAD0]")));
    EXPECT_FALSE(v->find_plain("<|im_end|>"));
    EXPECT_EQ(*v->byte_token(0xFF), TokenId{0xFF});
    const TokenId outside{v->size()};
    EXPECT_FALSE(v->contains(outside));
    EXPECT_EQ(v->bytes(outside), "");
    EXPECT_FALSE(v->is_control(outside));
    EXPECT_FALSE(v->ends_generation(outside));
}

TEST(vocabulary, sentencepiece_bytes_are_text) {
    const auto v = Vocabulary::make(small_sentencepiece());
    ASSERT_TRUE(v);
    EXPECT_EQ(v->bytes(*v->find("▁hello")), " hello");
    EXPECT_EQ(v->bytes(*v->find("<0x0A>")), "\n");
    EXPECT_EQ(*v->byte_token(10), *v->find("<0x0A>"));
    EXPECT_TRUE(v->add_bos());
    EXPECT_TRUE(v->add_space_prefix());
}

TEST(vocabulary, generation_ends_at_the_marks_that_end_it) {
    const auto v = Vocabulary::make(small_bpe());
    ASSERT_TRUE(v);
    EXPECT_TRUE(v->ends_generation(*v->find("<|im_end|>")));
    EXPECT_TRUE(v->ends_generation(*v->find("<|endoftext|>")));
    EXPECT_FALSE(v->ends_generation(*v->find("<|im_start|>")));
}

TEST(vocabulary, end_of_a_message_is_not_the_end_of_the_turn_where_return_and_call_exist) {
    auto data = small_bpe();
    const auto add = [&](const char* name) {
        data.tokens.push_back(name);
        data.token_types.push_back(3);
    };
    add("<|end|>");
    auto v = Vocabulary::make(data);
    EXPECT_TRUE(v->ends_generation(*v->find("<|end|>")));
    add("<|return|>");
    add("<|call|>");
    v = Vocabulary::make(data);
    EXPECT_FALSE(v->ends_generation(*v->find("<|end|>")));
    EXPECT_TRUE(v->ends_generation(*v->find("<|return|>")));
    EXPECT_TRUE(v->ends_generation(*v->find("<|call|>")));
}

TEST(vocabulary, stays_whole_when_it_is_moved) {
    auto v = Vocabulary::make(small_bpe());
    const Vocabulary moved = *std::move(v);
    EXPECT_EQ(moved.bytes(*moved.find("hello")), "hello");
}

}  // namespace
}  // namespace cadans::text
