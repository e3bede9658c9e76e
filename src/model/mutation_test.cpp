// Goal: no damage to a file leads to anything but a refusal in words or a model that loads. Run under
// sanitizers this is the proof in small; tests/fuzz/gguf_mutations is the same at length.
#include <gtest/gtest.h>

#include <array>

#include "model/testing/gguf_mutator.h"
#include "model/testing/read_all.h"
#include "model/testing/tiny_model.h"

namespace cadans::model {
namespace {

using testing::GgufMutator;
using testing::Reached;

constexpr size_t kHeadBytes = 4096;

std::vector<testing::GgufWriter> seeds() {
    return {testing::tiny_model(),
            testing::tiny_model({.family = "qwen2", .type = TensorType::q8_0, .tied = false, .layers = 1}),
            testing::tiny_model({.family = "qwen3", .type = TensorType::bf16, .layers = 1}),
            testing::tiny_model({.family = "gemma3", .type = TensorType::q4_0}),
            testing::tiny_model({.type = TensorType::f16, .rope_factors = true, .layers = 1})};
}

void expect_words(Reached reached, const Error& why, uint64_t seed) {
    if (reached == Reached::loaded) return;
    if (reached != Reached::refused && why.message.empty()) return;  // only too large to load here
    EXPECT_FALSE(why.message.empty()) << seed;
    EXPECT_NE(why.code, ErrorCode::internal) << seed << ": " << why.message;
    if (reached != Reached::refused) return;
    EXPECT_NE(why.where.find("at byte "), std::string::npos) << seed << why.message;
}

TEST(mutation, blind_damage_is_refused_in_words_or_harmless) {
    ThreadPool pool(1);
    std::vector<testing::Bytes> files;
    for (const auto& seed : seeds()) files.push_back(seed.bytes());
    std::array<int, 5> reached{};
    for (uint64_t i = 0; i < 2000; ++i) {
        Error why;
        const Reached at = testing::read_all(GgufMutator(i).raw(files[i % files.size()], kHeadBytes), pool, why);
        expect_words(at, why, i);
        ++reached[static_cast<size_t>(at)];
    }
    EXPECT_GT(reached[static_cast<size_t>(Reached::refused)], 100) << "the damage must often matter";
    EXPECT_GT(reached[static_cast<size_t>(Reached::loaded)], 20) << "and sometimes not";
}

TEST(mutation, damage_to_fields_is_refused_in_words_or_harmless) {
    ThreadPool pool(1);
    const auto files = seeds();
    std::array<int, 5> reached{};
    for (uint64_t i = 0; i < 2000; ++i) {
        Error why;
        const Reached at = testing::read_all(GgufMutator(i).structured(files[i % files.size()]), pool, why);
        expect_words(at, why, i);
        ++reached[static_cast<size_t>(at)];
    }
    for (const Reached each : {Reached::refused, Reached::parsed, Reached::loaded})
        EXPECT_GT(reached[static_cast<size_t>(each)], 20) << static_cast<int>(each);
}

TEST(mutation, an_undamaged_copy_loads) {
    ThreadPool pool(1);
    for (const auto& seed : seeds()) {
        const testing::Bytes bytes = seed.bytes();
        auto file = GgufFile::parse(bytes, "t.gguf");
        ASSERT_TRUE(file.has_value());
        EXPECT_EQ(testing::editable(*file).bytes(), bytes);
        Error why;
        EXPECT_EQ(testing::read_all(bytes, pool, why), Reached::loaded) << why.message;
    }
}

}  // namespace
}  // namespace cadans::model
