#include "text/same_words.h"

#include <gtest/gtest.h>

#include "text/test_vocabulary.h"

namespace cadans::text {
namespace {

TEST(same_words, tell_what_differs_first) {
    const Vocabulary one = Vocabulary::make(small_bpe()).value();
    EXPECT_EQ(first_difference(one, Vocabulary::make(small_bpe()).value()), std::nullopt);

    VocabularyData data = small_bpe();
    data.tokens.emplace_back("one more");
    if (!data.token_types.empty()) data.token_types.push_back(1);
    const std::string longer = first_difference(Vocabulary::make(data).value(), one).value_or("");
    EXPECT_NE(longer.find(std::to_string(one.size() + 1) + " tokens"), std::string::npos) << longer;
    EXPECT_NE(longer.find(std::to_string(one.size())), std::string::npos) << longer;

    data = small_bpe();
    const size_t last = data.tokens.size() - 1;
    data.token_types.assign(data.tokens.size(), 1);
    for (size_t i = 0; i < data.tokens.size(); i++)
        if (one.is_control(TokenId{static_cast<uint32_t>(i)})) data.token_types[i] = 3;
    ASSERT_FALSE(one.is_control(TokenId{static_cast<uint32_t>(last)}));
    data.token_types[last] = 3;
    const auto control = Vocabulary::make(data);
    ASSERT_TRUE(control) << control.error().message;
    const std::string kind = first_difference(*control, one).value_or("");
    EXPECT_NE(kind.find("control"), std::string::npos) << kind;

    data = small_bpe();
    data.merges.clear();
    data.tokens[last] = "another";
    const auto other = Vocabulary::make(data);
    ASSERT_TRUE(other) << other.error().message;
    const std::string text = first_difference(*other, one).value_or("");
    EXPECT_NE(text.find("\"another\""), std::string::npos) << text;
    EXPECT_NE(text.find("token " + std::to_string(last)), std::string::npos) << text;
}

}  // namespace
}  // namespace cadans::text
