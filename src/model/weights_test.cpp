#include "model/weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "model/testing/tiny_model.h"

namespace cadans::model {
namespace {

using testing::Bytes;
using testing::ByteWriter;
using testing::GgufWriter;
using testing::tiny_model;
using testing::TinyModel;

/// A written model, read again; the bytes live as long as this does.
struct Loaded {
    explicit Loaded(const GgufWriter& writer, uint32_t threads = 1, const OnLoadProgress& progress = {})
        : bytes(writer.bytes()), pool(threads) {
        auto parsed = GgufFile::parse(bytes, "t.gguf");
        if (!parsed) {
            error = parsed.error();
            return;
        }
        auto spec = read_spec(*parsed);
        if (!spec) {
            error = spec.error();
            return;
        }
        auto loaded = Model::load(*parsed, *std::move(spec), pool, progress);
        if (loaded)
            model = *std::move(loaded);
        else
            error = loaded.error();
        file.emplace(*std::move(parsed));
    }
    Bytes bytes;
    ThreadPool pool;
    std::optional<GgufFile> file;
    std::unique_ptr<Model> model;
    Error error;
};

/// The matrix unpacked again into the layout of the file.
Bytes unpacked(const PackedMatrix& w) {
    const size_t row = kernels::row_bytes(w.type, w.cols);
    Bytes rows(row * w.rows);
    for (size_t p = 0; p < w.panels(); ++p)
        kernels::unpack_panel(w.type, w.data + p * kernels::panel_bytes(w.type, w.cols),
                              std::min(kernels::kPanelRows, w.rows - p * kernels::kPanelRows), w.cols,
                              rows.data() + p * kernels::kPanelRows * row, row);
    return rows;
}

Bytes bytes_of(const GgufFile& file, std::string_view name) {
    const auto payload = file.tensor(name)->payload;
    return {payload.begin(), payload.end()};
}

TEST(weights, hold_exactly_the_bytes_of_the_file) {
    for (const TensorType type :
         {TensorType::f32, TensorType::f16, TensorType::bf16, TensorType::q8_0, TensorType::q4_0}) {
        const Loaded it(tiny_model({.type = type, .tied = false, .vocab = 50}));
        ASSERT_NE(it.model, nullptr) << it.error.message;
        EXPECT_EQ(unpacked(it.model->head()), bytes_of(*it.file, "output.weight"));
        const LayerWeights& layer = it.model->layer(1);
        EXPECT_EQ(unpacked(layer.ffn_gate), bytes_of(*it.file, "blk.1.ffn_gate.weight"));
        EXPECT_EQ(unpacked(layer.ffn_up), bytes_of(*it.file, "blk.1.ffn_up.weight"));
        EXPECT_EQ(unpacked(layer.ffn_down), bytes_of(*it.file, "blk.1.ffn_down.weight"));
        EXPECT_EQ(unpacked(layer.attn_output), bytes_of(*it.file, "blk.1.attn_output.weight"));
    }
}

TEST(weights, join_q_k_and_v_where_their_types_agree) {
    const Loaded it(tiny_model({.type = TensorType::q8_0}));
    ASSERT_NE(it.model, nullptr) << it.error.message;
    const LayerWeights& layer = it.model->layer(0);
    ASSERT_EQ(layer.qkv.size(), 1U);
    EXPECT_EQ(layer.qkv[0].matrix.rows, 128U + 64U + 64U);
    Bytes expected = bytes_of(*it.file, "blk.0.attn_q.weight");
    for (const char* name : {"blk.0.attn_k.weight", "blk.0.attn_v.weight"}) {
        const Bytes more = bytes_of(*it.file, name);
        expected.insert(expected.end(), more.begin(), more.end());
    }
    EXPECT_EQ(unpacked(layer.qkv[0].matrix), expected);
}

TEST(weights, keep_a_v_of_another_type_apart) {
    GgufWriter writer = tiny_model({.type = TensorType::q8_0});
    auto* const v = writer.find_tensor("blk.0.attn_v.weight");
    v->type = static_cast<uint32_t>(TensorType::f16);
    v->data = testing::tiny::weights(TensorType::f16, 64 * 64, 7);
    const Loaded it(writer);
    ASSERT_NE(it.model, nullptr) << it.error.message;
    const LayerWeights& layer = it.model->layer(0);
    ASSERT_EQ(layer.qkv.size(), 2U);
    EXPECT_EQ(layer.qkv[0].matrix.rows, 192U);
    EXPECT_EQ(layer.qkv[1].first_row, 192U);
    EXPECT_EQ(unpacked(layer.qkv[1].matrix), bytes_of(*it.file, "blk.0.attn_v.weight"));
    EXPECT_EQ(it.model->layer(1).qkv.size(), 1U);
}

TEST(weights, give_the_embedding_of_every_token) {
    for (const bool tied : {true, false})
        for (const TensorType type : {TensorType::f32, TensorType::bf16, TensorType::q8_0}) {
            const Loaded it(tiny_model({.type = type, .tied = tied}));
            ASSERT_NE(it.model, nullptr) << it.error.message;
            const GgufTensor& source = *it.file->tensor("token_embd.weight");
            for (uint32_t token = 0; token < 48; ++token) {
                std::vector<float> expected(64), found(64);
                kernels::dequantize_row(*kernels::type_from_gguf(static_cast<uint32_t>(type)),
                                        source.payload.data() + token * source.row_bytes(), 64, expected.data());
                it.model->embedding_row(token, found);
                EXPECT_EQ(std::memcmp(expected.data(), found.data(), 256), 0) << token;
            }
            EXPECT_EQ(it.model->head().rows, 48U);
        }
}

TEST(weights, hold_norms_biases_and_factors_as_floats) {
    const Loaded qwen2(tiny_model({.family = "qwen2"}));
    ASSERT_NE(qwen2.model, nullptr) << qwen2.error.message;
    ASSERT_EQ(qwen2.model->layer(1).qkv_bias.size(), 256U);
    EXPECT_EQ(std::memcmp(qwen2.model->layer(1).qkv_bias.data() + 128,
                          bytes_of(*qwen2.file, "blk.1.attn_k.bias").data(), 256),
              0);
    EXPECT_EQ(std::memcmp(qwen2.model->layer(1).qkv_bias.data() + 192,
                          bytes_of(*qwen2.file, "blk.1.attn_v.bias").data(), 256),
              0);
    EXPECT_TRUE(qwen2.model->layer(0).q_norm.empty());

    const Loaded gemma(tiny_model({.family = "gemma3"}));
    ASSERT_NE(gemma.model, nullptr) << gemma.error.message;
    EXPECT_EQ(gemma.model->layer(0).q_norm.size(), 32U);
    EXPECT_EQ(gemma.model->layer(0).post_ffn_norm.size(), 64U);
    EXPECT_EQ(std::memcmp(gemma.model->layer(1).post_attn_norm.data(),
                          bytes_of(*gemma.file, "blk.1.post_attention_norm.weight").data(), 256),
              0);

    const Loaded llama3(tiny_model({.rope_factors = true}));
    ASSERT_NE(llama3.model, nullptr) << llama3.error.message;
    ASSERT_EQ(llama3.model->rope_factors().size(), 16U);
    EXPECT_EQ(llama3.model->rope_factors()[3], 4.0F);
}

TEST(weights, are_the_same_bytes_on_any_number_of_threads) {
    const GgufWriter writer = tiny_model({.type = TensorType::q4_0, .layers = 5});
    const Loaded one(writer, 1), three(writer, 3);
    ASSERT_NE(one.model, nullptr);
    ASSERT_NE(three.model, nullptr);
    ASSERT_EQ(one.model->weight_bytes(), three.model->weight_bytes());
    EXPECT_EQ(std::memcmp(one.model->head().data, three.model->head().data, one.model->weight_bytes()), 0);
}

TEST(weights, do_not_need_the_file_once_loaded) {
    Loaded it(tiny_model({.type = TensorType::q8_0}));
    ASSERT_NE(it.model, nullptr);
    const Bytes before = unpacked(it.model->layer(1).ffn_down);
    std::fill(it.bytes.begin(), it.bytes.end(), std::byte{0xFF});
    EXPECT_EQ(unpacked(it.model->layer(1).ffn_down), before);
}

TEST(weights, leave_padding_rows_of_the_embedding_out) {
    GgufWriter writer = tiny_model();
    auto* const embedding = writer.find_tensor("token_embd.weight");
    embedding->dims = {64, 100};
    embedding->data.resize(64 * 100 * 4);
    const Loaded it(writer);
    ASSERT_NE(it.model, nullptr) << it.error.message;
    EXPECT_EQ(it.model->head().rows, 48U);
}

// Contract 16: weights that are no numbers.
TEST(weights, are_refused_when_not_finite_with_tensor_and_count) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const char* name : {"blk.1.ffn_down.weight", "output_norm.weight", "token_embd.weight"}) {
        GgufWriter writer = tiny_model();
        std::memcpy(writer.find_tensor(name)->data.data() + 8, &nan, sizeof nan);
        std::memcpy(writer.find_tensor(name)->data.data() + 100, &nan, sizeof nan);
        const Loaded it(writer);
        EXPECT_EQ(it.model, nullptr);
        EXPECT_NE(it.error.message.find("2 of its numbers"), std::string::npos) << it.error.message;
        EXPECT_TRUE(it.error.where.starts_with(name)) << it.error.where;
    }
    GgufWriter writer = tiny_model({.type = TensorType::q8_0});
    writer.find_tensor("blk.0.attn_k.weight")->data[35] = std::byte{0x7C};  // an infinite scale in the second block
    const Loaded it(writer);
    EXPECT_NE(it.error.message.find("1 of its numbers"), std::string::npos) << it.error.message;
}

TEST(weights, are_refused_with_a_rope_factor_that_is_not_positive) {
    GgufWriter writer = tiny_model({.rope_factors = true});
    std::memset(writer.find_tensor("rope_freqs.weight")->data.data(), 0, 4);
    const Loaded it(writer);
    EXPECT_NE(it.error.message.find("rope factor of 0"), std::string::npos) << it.error.message;
}

TEST(weights, report_progress_that_grows_to_the_whole) {
    std::vector<LoadProgress> seen;
    const Loaded it(tiny_model(), 2, [&](LoadProgress now) {
        seen.push_back(now);
        return true;
    });
    ASSERT_NE(it.model, nullptr);
    ASSERT_FALSE(seen.empty());
    for (size_t i = 1; i < seen.size(); ++i) EXPECT_GE(seen[i].done_bytes, seen[i - 1].done_bytes);
    EXPECT_EQ(seen.back().done_bytes, seen.back().total_bytes);
}

TEST(weights, stop_loading_when_told_to) {
    int calls = 0;
    const Loaded it(tiny_model(), 1, [&](LoadProgress) { return ++calls < 3; });
    EXPECT_EQ(it.model, nullptr);
    EXPECT_EQ(it.error.code, ErrorCode::cancelled);
    EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace cadans::model
