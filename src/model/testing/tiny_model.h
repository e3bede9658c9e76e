// Tiny models of every family with random weights, as files that load.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/random.h"
#include "kernels/types.h"
#include "model/testing/gguf_writer.h"

namespace cadans::model::testing {

/// What to make; the shape is the smallest in which every part still matters.
struct TinyModel {
    std::string_view family = "llama";
    TensorType type = TensorType::f32;  ///< of matrices; widths must be whole blocks of it
    bool tied = true;
    bool rope_factors = false;
    uint32_t layers = 2;
    uint32_t width = 64;
    uint32_t heads = 4;
    uint32_t kv_heads = 2;
    uint32_t head_dim = 32;
    uint32_t ffn_width = 96;
    uint32_t vocab = 48;
};

namespace tiny {

inline float noise(uint64_t seed) {
    return static_cast<float>(static_cast<int64_t>(mix64(seed) >> 40) - (1 << 23)) / static_cast<float>(1 << 25);
}

/// Byte b of a block where it belongs to the block's scale, which is small.
inline std::optional<uint8_t> quantised_byte(TensorType type, uint32_t b) {
    constexpr std::array<uint8_t, 2> kScale = {0x19, 0x18};  // 0.002 as f16
    constexpr uint8_t kExponent = 121;                       // 2^-7
    if (type == TensorType::mxfp4) return b == 0 ? std::optional(kExponent) : std::nullopt;
    const auto known = kernels::type_from_gguf(static_cast<uint32_t>(type));
    if (!known) return std::nullopt;
    for (const int at : {kernels::type_info(*known).scale_at, kernels::type_info(*known).min_at})
        if (at >= 0 && b >= static_cast<uint32_t>(at) && b < static_cast<uint32_t>(at) + 2)
            return kScale[b - static_cast<uint32_t>(at)];
    return std::nullopt;
}

/// n random numbers in -0.25 .. 0.25 in that type.
inline Bytes weights(TensorType type, uint64_t n, uint64_t seed) {
    ByteWriter out;
    const TensorTypeInfo& info = tensor_type_info(type);
    for (uint64_t i = 0; i < n / info.block_weights; ++i) {
        const uint64_t key = mix64(seed) + i;
        switch (type) {
            case TensorType::f32:
                out.put(noise(key));
                break;
            case TensorType::f16:
                out.put(static_cast<uint16_t>(0x2C00U | (mix64(key) & 0x87FFU)));  // ±1/16 .. ±1/4
                break;
            case TensorType::bf16: {
                const float x = noise(key);
                uint32_t bits = 0;
                std::memcpy(&bits, &x, sizeof bits);
                out.put(static_cast<uint16_t>(bits >> 16));
                break;
            }
            default:
                for (uint32_t b = 0; b < info.block_bytes; ++b)
                    out.put(quantised_byte(type, b).value_or(static_cast<uint8_t>(mix64(key * 512 + b))));
        }
    }
    return std::move(out.bytes);
}

}  // namespace tiny

/// A byte-level vocabulary: two control tokens, letters, a few merges, and unused ones up to `n`.
inline void add_tiny_vocabulary(GgufWriter& file, uint32_t n) {
    std::vector<std::string> tokens = {"<|begin|>", "<|end|>"};
    std::vector<int32_t> kinds = {3, 3};
    for (char c = 'a'; c <= 'z'; ++c) tokens.emplace_back(1, c);
    for (const char* word : {"ab", "abc", "th", "the"}) tokens.emplace_back(word);
    kinds.resize(tokens.size(), 1);
    while (tokens.size() < n) {
        tokens.push_back("[unused" + std::to_string(tokens.size()) + "]");
        kinds.push_back(5);
    }
    file.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "smollm");
    file.texts("tokenizer.ggml.tokens", tokens).array<int32_t>("tokenizer.ggml.token_type", GgufType::i32, kinds);
    file.texts("tokenizer.ggml.merges", {"a b", "ab c", "t h", "th e"});
    file.u32("tokenizer.ggml.bos_token_id", 0).u32("tokenizer.ggml.eos_token_id", 1);
    file.flag("tokenizer.ggml.add_bos_token", false);
    file.text("tokenizer.chat_template", "{% for m in messages %}{{ m['content'] }}{% endfor %}");
}

inline void add_tiny_tensors(GgufWriter& file, const TinyModel& m) {
    uint64_t seed = 1;
    const bool gemma = m.family == "gemma3";
    const auto vector = [&](const std::string& name, uint64_t n) {
        file.tensor(name, {n}, TensorType::f32, tiny::weights(TensorType::f32, n, seed++));
    };
    const auto matrix = [&](const std::string& name, uint64_t in, uint64_t out) {
        file.tensor(name, {in, out}, m.type, tiny::weights(m.type, in * out, seed++));
    };
    const uint64_t q = m.heads * m.head_dim, k = m.kv_heads * m.head_dim;
    matrix("token_embd.weight", m.width, m.vocab);
    vector("output_norm.weight", m.width);
    if (!m.tied) matrix("output.weight", m.width, m.vocab);
    if (m.rope_factors) {
        ByteWriter ones;
        for (uint32_t i = 0; i < m.head_dim / 2; ++i) ones.put(1.0F + static_cast<float>(i));
        file.tensor("rope_freqs.weight", {m.head_dim / 2}, TensorType::f32, ones.bytes);
    }
    for (uint32_t i = 0; i < m.layers; ++i) {
        const std::string b = "blk." + std::to_string(i) + ".";
        vector(b + "attn_norm.weight", m.width);
        matrix(b + "attn_q.weight", m.width, q);
        matrix(b + "attn_k.weight", m.width, k);
        matrix(b + "attn_v.weight", m.width, k);
        if (m.family == "qwen2") {
            vector(b + "attn_q.bias", q);
            vector(b + "attn_k.bias", k);
            vector(b + "attn_v.bias", k);
        }
        if (gemma || m.family == "qwen3") {
            vector(b + "attn_q_norm.weight", m.head_dim);
            vector(b + "attn_k_norm.weight", m.head_dim);
        }
        matrix(b + "attn_output.weight", q, m.width);
        if (gemma) vector(b + "post_attention_norm.weight", m.width);
        vector(b + "ffn_norm.weight", m.width);
        matrix(b + "ffn_gate.weight", m.width, m.ffn_width);
        matrix(b + "ffn_up.weight", m.width, m.ffn_width);
        matrix(b + "ffn_down.weight", m.ffn_width, m.width);
        if (gemma) vector(b + "post_ffw_norm.weight", m.width);
    }
}

/// The whole file, ready to be changed by a test and written.
inline GgufWriter tiny_model(const TinyModel& m = {}) {
    GgufWriter file;
    const std::string a(m.family);
    file.text("general.architecture", a).text("general.name", "tiny");
    file.u32(a + ".block_count", m.layers).u32(a + ".context_length", 256).u32(a + ".embedding_length", m.width);
    file.u32(a + ".feed_forward_length", m.ffn_width).u32(a + ".attention.head_count", m.heads);
    file.u32(a + ".attention.head_count_kv", m.kv_heads).u32(a + ".attention.key_length", m.head_dim);
    file.u32(a + ".attention.value_length", m.head_dim).f32(a + ".attention.layer_norm_rms_epsilon", 1e-5F);
    file.f32(a + ".rope.freq_base", 10000.0F).u32(a + ".rope.dimension_count", m.head_dim);
    if (m.family == "gemma3") file.u32(a + ".attention.sliding_window", 32);
    add_tiny_vocabulary(file, m.vocab);
    add_tiny_tensors(file, m);
    return file;
}

}  // namespace cadans::model::testing
