#include "model/spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/testing/tiny_model.h"

namespace cadans::model {
namespace {

using testing::Bytes;
using testing::GgufWriter;
using testing::tiny_model;
using testing::TinyModel;

Result<ModelSpec> spec_of(const GgufWriter& writer) {
    const Bytes bytes = writer.bytes();
    auto file = GgufFile::parse(bytes, "t.gguf");
    if (!file) return std::move(file).error();
    return read_spec(*file);
}

void expect_refused(const GgufWriter& writer, std::string_view message_part, std::string_view where_part,
                    ErrorCode code = ErrorCode::bad_input) {
    auto spec = spec_of(writer);
    ASSERT_FALSE(spec.has_value()) << message_part;
    EXPECT_EQ(spec.error().code, code) << spec.error().message;
    EXPECT_NE(spec.error().message.find(message_part), std::string::npos) << spec.error().message;
    EXPECT_NE(spec.error().where.find(where_part), std::string::npos) << spec.error().where;
}

TEST(spec, reads_a_llama) {
    auto spec = spec_of(tiny_model());
    ASSERT_TRUE(spec.has_value()) << spec.error().message;
    EXPECT_EQ(spec->family, Family::llama);
    EXPECT_EQ(spec->n_layers, 2U);
    EXPECT_EQ(spec->width, 64U);
    EXPECT_EQ(spec->q_width(), 128U);
    EXPECT_EQ(spec->kv_width(), 64U);
    EXPECT_EQ(spec->vocab, 48U);
    EXPECT_EQ(spec->rope_style, RopeStyle::norm);
    EXPECT_EQ(spec->activation, Activation::silu);
    EXPECT_FLOAT_EQ(spec->attention_scale, 1.0F / std::sqrt(32.0F));
    EXPECT_EQ(spec->embedding_scale, 1.0F);
    EXPECT_EQ(spec->window, 0U);
    EXPECT_TRUE(spec->tied_head);
    EXPECT_FALSE(spec->qkv_bias || spec->qk_norm || spec->post_norms || spec->rope_factors);
}

TEST(spec, reads_what_is_special_about_each_family) {
    auto llama3 = spec_of(tiny_model({.tied = false, .rope_factors = true}));
    ASSERT_TRUE(llama3.has_value()) << llama3.error().message;
    EXPECT_TRUE(llama3->rope_factors);
    EXPECT_FALSE(llama3->tied_head);

    auto qwen2 = spec_of(tiny_model({.family = "qwen2"}));
    ASSERT_TRUE(qwen2.has_value()) << qwen2.error().message;
    EXPECT_TRUE(qwen2->qkv_bias);
    EXPECT_EQ(qwen2->rope_style, RopeStyle::neox);

    auto qwen3 = spec_of(tiny_model({.family = "qwen3"}));
    ASSERT_TRUE(qwen3.has_value()) << qwen3.error().message;
    EXPECT_TRUE(qwen3->qk_norm);
    EXPECT_FALSE(qwen3->qkv_bias);
}

TEST(spec, reads_gemma3_with_what_its_file_leaves_out) {
    GgufWriter writer = tiny_model({.family = "gemma3", .layers = 7});
    writer.remove("gemma3.rope.freq_base");
    auto spec = spec_of(writer);
    ASSERT_TRUE(spec.has_value()) << spec.error().message;
    EXPECT_TRUE(spec->qk_norm && spec->post_norms);
    EXPECT_EQ(spec->activation, Activation::gelu_tanh);
    EXPECT_FLOAT_EQ(spec->embedding_scale, 8.0F);
    EXPECT_EQ(spec->window, 32U);
    EXPECT_EQ(spec->windowed, (std::vector<uint8_t>{1, 1, 1, 1, 1, 0, 1}));
    EXPECT_EQ(spec->rope_of(0).base, 1e4);
    EXPECT_EQ(spec->rope_of(5).base, 1e6);
    writer.f32("gemma3.rope.scaling.factor", 8.0F).text("gemma3.rope.scaling.type", "linear");
    spec = spec_of(writer);
    EXPECT_EQ(spec->rope_of(0).scale, 1.0) << "the factor is for layers without a window only";
    EXPECT_EQ(spec->rope_of(5).scale, 0.125);
}

TEST(spec, takes_a_window_pattern_as_a_period_or_as_a_list) {
    GgufWriter writer = tiny_model({.family = "gemma3", .layers = 4});
    writer.u32("gemma3.attention.sliding_window_pattern", 2);
    EXPECT_EQ(spec_of(writer)->windowed, (std::vector<uint8_t>{1, 0, 1, 0}));
    writer.remove("gemma3.attention.sliding_window_pattern");
    writer.array<uint8_t>("gemma3.attention.sliding_window_pattern", GgufType::boolean, {0, 1, 1, 0});
    EXPECT_EQ(spec_of(writer)->windowed, (std::vector<uint8_t>{0, 1, 1, 0}));
    writer.remove("gemma3.attention.sliding_window_pattern");
    writer.array<uint8_t>("gemma3.attention.sliding_window_pattern", GgufType::boolean, {0, 1, 1});
    expect_refused(writer, "3 items for 4 layers", "sliding_window_pattern");
}

TEST(spec, gives_a_windowed_llama_its_window_on_every_layer) {
    GgufWriter writer = tiny_model();
    writer.u32("llama.attention.sliding_window", 100);
    auto spec = spec_of(writer);
    EXPECT_EQ(spec->window, 100U);
    EXPECT_EQ(spec->windowed, (std::vector<uint8_t>{1, 1}));
    writer.replace_u32("llama.attention.sliding_window", 256);
    EXPECT_EQ(spec_of(writer)->window, 0U) << "a window of the whole context is none";
}

TEST(spec, names_an_unknown_family_and_the_supported_ones) {
    GgufWriter writer = tiny_model();
    writer.remove("general.architecture");
    writer.text("general.architecture", "mamba\x1b[2J");
    expect_refused(writer, "'mamba?[2J'", "general.architecture", ErrorCode::unsupported);
    expect_refused(writer, "llama, qwen2, qwen3, gemma3", "general.architecture", ErrorCode::unsupported);
    writer.remove("general.architecture");
    expect_refused(writer, "missing", "general.architecture");
}

TEST(spec, refuses_a_missing_key_by_name) {
    for (const char* key : {"block_count", "context_length", "embedding_length", "feed_forward_length",
                            "attention.head_count", "attention.layer_norm_rms_epsilon"}) {
        GgufWriter writer = tiny_model();
        writer.remove(std::string("llama.") + key);
        expect_refused(writer, "missing", key);
    }
    GgufWriter writer = tiny_model();
    writer.remove("tokenizer.ggml.tokens");
    expect_refused(writer, "missing", "tokenizer.ggml.tokens");
}

// Contract 15: ranges and divisibility.
TEST(spec, refuses_numbers_outside_their_range) {
    struct Bad {
        const char* key;
        uint32_t value;
        const char* message;
    };
    for (const Bad& bad :
         {Bad{"block_count", 0, "outside 1 to 1024"}, Bad{"block_count", 1025, "outside 1 to 1024"},
          Bad{"block_count", 0xFFFFFFFF, "outside"}, Bad{"embedding_length", 0, "outside"},
          Bad{"embedding_length", 65'537, "outside"}, Bad{"context_length", 0, "outside"},
          Bad{"feed_forward_length", 0, "outside"}, Bad{"attention.head_count", 0, "outside"},
          Bad{"attention.head_count", 2000, "outside"}, Bad{"attention.head_count_kv", 0, "outside"},
          Bad{"attention.head_count_kv", 3, "do not divide"}, Bad{"rope.dimension_count", 0, "outside"},
          Bad{"rope.dimension_count", 33, "outside"}, Bad{"rope.dimension_count", 31, "odd"}}) {
        GgufWriter writer = tiny_model();
        writer.replace_u32(std::string("llama.") + bad.key, bad.value);
        expect_refused(writer, bad.message, bad.key);
    }
}

TEST(spec, refuses_head_sizes_that_are_not_computed) {
    for (const uint32_t n : {8U, 24U, 528U}) {
        GgufWriter writer = tiny_model();
        writer.replace_u32("llama.attention.key_length", n);
        writer.replace_u32("llama.attention.value_length", n);
        writer.remove("llama.rope.dimension_count");
        expect_refused(writer, "multiples of 16", "attention.key_length", ErrorCode::unsupported);
    }
    GgufWriter writer = tiny_model();
    writer.replace_u32("llama.attention.value_length", 16);
    expect_refused(writer, "only equal lengths", "attention.value_length", ErrorCode::unsupported);
    writer = tiny_model({.heads = 3, .kv_heads = 1});
    writer.remove("llama.attention.key_length");
    expect_refused(writer, "does not divide among 3 heads", "attention.head_count");
}

TEST(spec, refuses_floats_that_are_no_sane_numbers) {
    for (const float x : {0.0F, -1.0F, 1.0F, std::numeric_limits<float>::quiet_NaN()}) {
        GgufWriter writer = tiny_model();
        writer.remove("llama.attention.layer_norm_rms_epsilon");
        writer.f32("llama.attention.layer_norm_rms_epsilon", x);
        expect_refused(writer, "", "layer_norm_rms_epsilon");
    }
    for (const float x : {0.0F, -5.0F, 1e30F, std::numeric_limits<float>::infinity()}) {
        GgufWriter writer = tiny_model();
        writer.remove("llama.rope.freq_base");
        writer.f32("llama.rope.freq_base", x);
        expect_refused(writer, "", "rope.freq_base");
    }
}

TEST(spec, refuses_features_that_would_change_the_answer) {
    GgufWriter writer = tiny_model();
    writer.u32("llama.expert_count", 8);
    expect_refused(writer, "expert_count is not supported", "llama.expert_count", ErrorCode::unsupported);
    writer.replace_u32("llama.expert_count", 0);
    EXPECT_TRUE(spec_of(writer).has_value());
    writer.f32("llama.logit_scale", 0.5F);
    expect_refused(writer, "logit_scale is not supported", "llama.logit_scale", ErrorCode::unsupported);
    writer.remove("llama.logit_scale");
    writer.text("llama.rope.scaling.type", "yarn");
    expect_refused(writer, "rope scaling 'yarn'", "rope.scaling.type", ErrorCode::unsupported);
    writer = tiny_model();
    writer.array<uint32_t>("llama.unrelated", GgufType::u32, {1});
    writer.entry("llama.feed_forward_length").type = static_cast<uint32_t>(GgufType::array);
    writer.entry("llama.feed_forward_length").value =
        testing::ByteWriter().put(uint32_t{4}).put(uint64_t{2}).put(uint32_t{96}).put(uint32_t{64}).bytes;
    expect_refused(writer, "differs from layer to layer", "feed_forward_length", ErrorCode::unsupported);
}

TEST(spec, refuses_missing_and_misshapen_tensors_with_both_shapes) {
    GgufWriter writer = tiny_model();
    writer.remove_tensor("blk.1.ffn_up.weight");
    expect_refused(writer, "missing; expected one of 64 x 96", "blk.1.ffn_up.weight");
    writer = tiny_model();
    std::swap(writer.find_tensor("blk.0.ffn_down.weight")->dims[0],
              writer.find_tensor("blk.0.ffn_down.weight")->dims[1]);
    expect_refused(writer, "expected 96 x 64, found 64 x 96", "blk.0.ffn_down.weight");
    writer = tiny_model();
    writer.find_tensor("output_norm.weight")->dims = {32, 2};
    expect_refused(writer, "expected 64, found 32 x 2", "output_norm.weight");
    writer = tiny_model();
    writer.find_tensor("token_embd.weight")->dims = {64, 47};
    expect_refused(writer, "expected 64 x 48 or more rows, found 64 x 47", "token_embd.weight");
}

TEST(spec, allows_padding_rows_in_the_embedding) {
    GgufWriter writer = tiny_model();
    auto* const embedding = writer.find_tensor("token_embd.weight");
    embedding->dims = {64, 50};
    embedding->data.resize(64 * 50 * 4);
    auto spec = spec_of(writer);
    ASSERT_TRUE(spec.has_value()) << spec.error().message;
    EXPECT_EQ(spec->vocab, 48U);
}

TEST(spec, refuses_types_and_tensors_that_are_not_computed) {
    GgufWriter writer = tiny_model();
    auto* const up = writer.find_tensor("blk.0.ffn_up.weight");
    up->type = static_cast<uint32_t>(TensorType::i8);
    up->data.resize(64 * 96);
    expect_refused(writer, "type I8 are not supported; supported are F32", "blk.0.ffn_up.weight",
                   ErrorCode::unsupported);
    writer = tiny_model();
    writer.tensor("blk.0.attn_output.bias", {64}, TensorType::f32, Bytes(256));
    expect_refused(writer, "would change the answers", "blk.0.attn_output.bias", ErrorCode::unsupported);
    writer = tiny_model();
    auto* const norm = writer.find_tensor("output_norm.weight");
    norm->type = static_cast<uint32_t>(TensorType::q8_0);
    norm->data.resize(68);
    expect_refused(writer, "expected F32, F16 or BF16 for a vector", "output_norm.weight", ErrorCode::unsupported);
}

}  // namespace
}  // namespace cadans::model
