// Goal: the work of a model is that of its matrices and of its windows. Method: tiny models, counted by hand.
#include "engine/model_work.h"

#include <gtest/gtest.h>

#include "engine/kv_arena.h"
#include "model/testing/tiny_model.h"

namespace cadans::engine {
namespace {

ModelWork work_of_tiny(const model::testing::TinyModel& shape) {
    const model::testing::Bytes bytes = model::testing::tiny_model(shape).bytes();
    const model::GgufFile file = model::GgufFile::parse(bytes, "tiny").value();
    const model::ModelSpec spec = model::read_spec(file).value();
    ModelFacts facts;
    facts.groups = PageGroups::of(spec).facts;
    return work_of(spec, model::estimate_memory(spec, file), facts);
}

TEST(model_work, counts_the_matrices_of_a_llama) {
    const ModelWork work = work_of_tiny({});  // 2 layers, width 64, q 128, k and v 64, ffn 96, 48 tokens, f32
    EXPECT_DOUBLE_EQ(work.operations_per_row, 2.0 * 2 * 64 * (2 * 128 + 2 * 64 + 3 * 96));
    EXPECT_DOUBLE_EQ(work.operations_per_key, 2.0 * 2 * 2 * 128) << "a product with the key, one with the value";
    EXPECT_DOUBLE_EQ(work.operations_per_logits_row, 2.0 * 64 * 48);
    EXPECT_DOUBLE_EQ(work.bytes_per_key, 2.0 * 2 * 64 * 2) << "key and value, f16";
    EXPECT_DOUBLE_EQ(work.weight_bytes, 4.0 * 2 * 64 * (2 * 128 + 2 * 64 + 3 * 96)) << "f32";
    EXPECT_DOUBLE_EQ(work.head_bytes, 4.0 * 64 * 48);
    EXPECT_EQ(work.window_tokens, 0u);
    EXPECT_DOUBLE_EQ(work.window_share, 0.0);
}

TEST(model_work, knows_how_many_layers_of_a_gemma_have_a_window) {
    const ModelWork work = work_of_tiny({.family = "gemma3", .layers = 7});  // each sixth sees everything
    EXPECT_EQ(work.window_tokens, 32u);
    EXPECT_DOUBLE_EQ(work.window_share, 6.0 / 7);
    EXPECT_DOUBLE_EQ(work_of(work, 100, 1, 0).bytes, (101 + 6 * 32) * work.bytes_per_key / 7);
}

}  // namespace
}  // namespace cadans::engine
