// Goal: speed never changes text. Method: the scores of the same tokens, bit for bit, under every way to compute them.
#include <gtest/gtest.h>

#include <cstring>

#include "base/testing/allocations.h"
#include "engine/testing/step_rig.h"
#include "kernels/testing/emulated512.h"

namespace cadans::engine {
namespace {

using model::TensorType;
using model::testing::TinyModel;
using testing::StepRig;

constexpr uint32_t kTokens = 150;

struct Shape {
    TinyModel model;
    kernels::KvType kv = kernels::KvType::f16;
};

std::vector<Shape> shapes() {
    std::vector<TinyModel> all;
    for (const TensorType type :
         {TensorType::f32, TensorType::f16, TensorType::bf16, TensorType::q8_0, TensorType::q4_0})
        all.push_back({.family = "llama", .type = type});
    for (const TensorType type : {TensorType::iq4_nl, TensorType::mxfp4})
        all.push_back({.family = "llama", .type = type});
    for (const TensorType type : {TensorType::q2_k, TensorType::q3_k, TensorType::iq4_xs})
        all.push_back({.family = "llama", .type = type, .layers = 1, .width = 256, .head_dim = 64, .ffn_width = 256});
    all.push_back({.family = "llama", .type = TensorType::q8_0, .tied = false, .rope_factors = true});
    all.push_back({.family = "qwen2", .type = TensorType::q4_0});
    all.push_back({.family = "qwen3", .type = TensorType::q8_0});
    all.push_back({.family = "gemma3", .type = TensorType::q8_0, .layers = 7, .heads = 4, .kv_heads = 1});
    std::vector<Shape> with_pages;
    for (const TinyModel& model : all) with_pages.push_back({model});
    for (const size_t i : {size_t{0}, all.size() - 1}) with_pages.push_back({all[i], kernels::KvType::q8});
    return with_pages;
}

class Bits : public ::testing::TestWithParam<Shape> {
  protected:
    template <class Table>
    static StepRig rig_of(uint32_t threads, const Table& table) {
        return {GetParam().model, threads, table, GetParam().kv};
    }
};

void expect_same_bits(const StepRig::Sequence& a, const StepRig::Sequence& b, const char* what) {
    ASSERT_EQ(a.scores.size(), b.scores.size()) << what;
    ASSERT_EQ(a.scores.size(), a.tokens.size() - 1) << what;
    for (size_t i = 0; i < a.scores.size(); i++) {
        ASSERT_EQ(std::memcmp(&a.scores[i].logprob, &b.scores[i].logprob, sizeof(float)), 0)
            << what << ", token " << i + 1 << ": " << a.scores[i].logprob << " and " << b.scores[i].logprob;
        ASSERT_EQ(std::memcmp(a.scores[i].top, b.scores[i].top, sizeof a.scores[i].top), 0)
            << what << ", token " << i + 1;
    }
}

StepRig::Sequence whole(StepRig& rig, uint64_t seed) {
    StepRig::Sequence s = rig.sequence(seed, kTokens);
    rig.compute(s, kTokens);
    return s;
}

TEST_P(Bits, do_not_depend_on_where_a_prompt_is_cut) {
    StepRig rig = rig_of(2, *kernels::choose_isa());
    const StepRig::Sequence reference = whole(rig, 1);
    for (const uint32_t chunk : {1u, 7u, 32u, 100u}) {
        StepRig::Sequence s = rig.sequence(1, kTokens);
        rig.compute(s, chunk);
        expect_same_bits(reference, s, "chunks");
    }
}

TEST_P(Bits, of_a_vector_do_not_depend_on_where_its_prompt_is_cut_nor_on_others) {
    StepRig rig = rig_of(2, *kernels::choose_isa());
    const uint32_t width = rig.model().spec().width;
    for (const Pooling pooling : {Pooling::mean, Pooling::first, Pooling::last}) {
        Embedding whole_at_once(pooling, width);
        StepRig::Sequence reference = rig.sequence(1, kTokens);
        reference.embedding = &whole_at_once;
        rig.compute(reference, kTokens);
        EXPECT_EQ(whole_at_once.rows, pooling == Pooling::mean ? kTokens : 1);
        EXPECT_NE(whole_at_once.vector, std::vector<float>(width));
        for (const uint32_t chunk : {1u, 7u, 32u, 100u}) {
            Embedding cut(pooling, width), other(pooling, width);
            StepRig::Sequence s = rig.sequence(1, kTokens), mate = rig.sequence(2, kTokens);
            s.embedding = &cut;
            mate.embedding = &other;
            while (s.computed < kTokens) {
                const uint32_t rows = std::min(chunk, kTokens - s.computed);
                rig.step({&mate, &s}, {std::min(rows, 5u), rows});
            }
            ASSERT_EQ(std::memcmp(cut.vector.data(), whole_at_once.vector.data(), width * sizeof(float)), 0) << chunk;
        }
        // Preempted, it begins again.
        StepRig::Sequence again = rig.sequence(1, kTokens);
        Embedding twice(pooling, width);
        again.embedding = &twice;
        rig.step({&again}, {40});
        again.computed = 0;
        again.scores.clear();
        rig.compute(again, 64);
        EXPECT_EQ(std::memcmp(twice.vector.data(), whole_at_once.vector.data(), width * sizeof(float)), 0);
    }
}

TEST_P(Bits, do_not_depend_on_who_else_is_in_the_step) {
    StepRig rig = rig_of(2, *kernels::choose_isa());
    const StepRig::Sequence reference = whole(rig, 1);
    for (const uint32_t mates : {2u, 5u, 16u}) {
        std::vector<StepRig::Sequence> sequences;
        for (uint32_t i = 0; i < mates; i++) sequences.push_back(rig.sequence(i == mates / 2 ? 1 : 100 + i, kTokens));
        std::vector<StepRig::Sequence*> all;
        for (StepRig::Sequence& s : sequences) all.push_back(&s);
        for (uint64_t round = 0; sequences[mates / 2].computed < kTokens; round++) {
            std::vector<uint32_t> counts;
            for (uint32_t i = 0; i < mates; i++)
                counts.push_back(std::min<uint32_t>(static_cast<uint32_t>(mix64(round * 31 + i) % 14),
                                                    kTokens - sequences[i].computed));
            rig.step(all, counts);
        }
        expect_same_bits(reference, sequences[mates / 2], "batch mates");
    }
}

TEST_P(Bits, do_not_depend_on_the_number_of_threads) {
    StepRig one = rig_of(1, *kernels::choose_isa());
    const StepRig::Sequence reference = whole(one, 1);
    for (const uint32_t threads : {2u, 3u}) {
        StepRig many = rig_of(threads, *kernels::choose_isa());
        expect_same_bits(reference, whole(many, 1), "threads");
    }
}

TEST_P(Bits, do_not_depend_on_the_instruction_set) {
    StepRig scalar = rig_of(2, kernels::Isa::scalar);
    const StepRig::Sequence reference = whole(scalar, 1);
    for (const kernels::KernelTable* table : kernels::test::all_tables()) {
        StepRig rig = rig_of(2, *table);
        expect_same_bits(reference, whole(rig, 1), table->name);
    }
}

TEST_P(Bits, do_not_depend_on_what_a_page_held_before) {
    StepRig rig = rig_of(2, *kernels::choose_isa());
    const StepRig::Sequence reference = whole(rig, 1);
    StepRig::Sequence other = whole(rig, 2), again = rig.sequence(1, kTokens);
    again.pages = other.pages;
    rig.compute(again, 64);
    expect_same_bits(reference, again, "used pages");
}

// Scores of the rows that are computed; those before them came with the pages.
TEST_P(Bits, do_not_depend_on_whether_keys_were_cached_or_computed) {
    StepRig rig = rig_of(2, *kernels::choose_isa());
    const StepRig::Sequence reference = whole(rig, 1);
    for (const uint32_t shared : {32u, 64u, 1u, 50u, 127u, 149u}) {
        // One who goes another way after `shared` tokens, in the pages that both share and a copy.
        StepRig::Sequence other = rig.branch(reference, shared, rig.sequence(2, kTokens).tokens);
        std::copy_n(reference.tokens.begin(), shared, other.tokens.begin());
        rig.compute(other, 40);
        StepRig::Sequence again = rig.branch(other, shared, reference.tokens);
        rig.compute(again, 64);
        ASSERT_EQ(again.scores.size(), kTokens - 1 - shared);
        again.scores.insert(again.scores.begin(), reference.scores.begin(), reference.scores.begin() + shared);
        expect_same_bits(reference, again, "cached pages");
    }
}

std::string name_of(const ::testing::TestParamInfo<Shape>& shape) {
    return std::string(shape.param.model.family) + "_" +
           std::string(model::tensor_type_info(shape.param.model.type).name) +
           (shape.param.model.tied ? "" : "_untied") + (shape.param.kv == kernels::KvType::q8 ? "_q8_pages" : "");
}

INSTANTIATE_TEST_SUITE_P(every_family, Bits, ::testing::ValuesIn(shapes()), name_of);

TEST(step, allocates_nothing_once_it_is_warm) {
    StepRig rig({.family = "gemma3", .type = TensorType::q8_0, .layers = 7, .kv_heads = 1}, 2, *kernels::choose_isa());
    StepRig::Sequence s = rig.sequence(1, 200);
    s.scores.reserve(400);
    s.sampling.temperature = 0.8F;
    s.sampling.top_p = 0.9F;
    s.sampling.top_k = 20;
    s.sampling.repeat_penalty = 1.1F;
    const std::vector<StepRig::Sequence*> all = {&s};
    const std::vector<uint32_t> one = {1};
    for (int i = 0; i < 20; i++) rig.step(all, one, true);
    const uint64_t before = allocations_of_all_threads();
    for (int i = 0; i < 150; i++) rig.step(all, one, true);
    EXPECT_EQ(allocations_of_all_threads() - before, 0u);
}

TEST(step, a_different_prompt_gives_different_bits) {
    StepRig rig({}, 1, kernels::Isa::scalar);
    EXPECT_NE(whole(rig, 1).scores[50].logprob, whole(rig, 2).scores[50].logprob);
}

}  // namespace
}  // namespace cadans::engine
