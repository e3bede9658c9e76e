// Attention: close to plain softmax, and the same bits for every table, tile, chunk and split.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/reference/reference.h"
#include "kernels/testing/emulated512.h"

namespace cadans::kernels {

namespace {

constexpr KvType kKvTypes[] = {KvType::f16, KvType::q8};

/// What a page keeps of a row.
void round_row(KvType type, std::vector<float>& row) {
    if (type == KvType::f16) {
        for (float& x : row) x = f16_to_f32(f32_to_f16(x));
        return;
    }
    std::vector<float> whole = row;
    whole.resize((row.size() + kGroup - 1) / kGroup * kGroup);
    std::vector<ActivationGroup> groups(whole.size() / kGroup);
    kernel_table(Isa::scalar).quantize_row(whole.data(), whole.size(), groups.data());
    for (size_t i = 0; i < row.size(); ++i)
        row[i] = static_cast<float>(groups[i / kGroup].codes[i % kGroup]) * groups[i / kGroup].scale;
}

/// Keys and values of one sequence in pages whose unused slots hold NaN.
struct Cache {
    Cache(const KernelTable& table, size_t tokens, size_t hd, test::Numbers& numbers, KvType type) : head_dim(hd) {
        const size_t n_pages = (tokens + kPageTokens - 1) / kPageTokens, page_bytes = kv_page_bytes(hd, type);
        for (size_t p = 0; p < n_pages; ++p) {
            bytes.push_back(std::make_unique<test::Aligned>(page_bytes));
            std::memset(bytes.back()->data(), 0xFF, page_bytes);
            pages.push_back(bytes.back()->data());
        }
        for (size_t t = 0; t < tokens; ++t) {
            keys.push_back(numbers.floats(hd, 2.0f));
            values.push_back(numbers.floats(hd));
            table.kv_store(type, bytes[t / kPageTokens]->data(), t % kPageTokens, keys[t].data(), values[t].data(), hd);
            round_row(type, keys[t]);
            round_row(type, values[t]);
        }
    }
    size_t head_dim;
    std::vector<std::unique_ptr<test::Aligned>> bytes;
    std::vector<const std::byte*> pages;
    std::vector<std::vector<float>> keys, values;
};

std::vector<float> attend(const KernelTable& table, const AttentionHead& head, const Cache& cache,
                          const std::vector<float>& q, size_t n, size_t first_position) {
    std::vector<float> out(q.size(), -7.0f);
    test::Aligned scratch(attention_scratch_bytes(head.head_dim));
    const size_t row = head.q_heads * head.head_dim;
    table.attention(head, {q.data(), row, head.head_dim, n, first_position}, cache.pages.data(),
                    {out.data(), row, head.head_dim}, scratch.data());
    return out;
}

}  // namespace

TEST(attention, agrees_with_plain_softmax) {
    test::Numbers numbers(10);
    for (const size_t hd : {32u, 64u, 80u, 256u})
        for (const size_t window : {0u, 50u})
            for (const auto& [softcap, type] :
                 {std::pair{0.0f, KvType::f16}, {20.0f, KvType::f16}, {0.0f, KvType::q8}}) {
                const size_t tokens = 700, n = 5;
                const Cache cache(kernel_table(Isa::scalar), tokens, hd, numbers, type);
                const AttentionHead head{hd, 2, window, 1.0f / std::sqrt(static_cast<float>(hd)), softcap, type};
                const auto q = numbers.floats(n * 2 * hd, 2.0f);
                for (const KernelTable* table : test::all_tables()) {
                    const auto out = attend(*table, head, cache, q, n, tokens - n);
                    for (size_t m = 0; m < n * 2; ++m) {
                        const size_t end = tokens - n + m / 2 + 1;
                        const size_t first = window != 0 && end > window ? end - window : 0;
                        const auto expected =
                            reference::attention(&q[m * hd], cache.keys, cache.values, first, end,
                                                 static_cast<double>(head.scale), static_cast<double>(softcap));
                        for (size_t d = 0; d < hd; ++d)
                            ASSERT_NEAR(out[m * hd + d], expected[d], 3e-6) << table->name << " hd " << hd;
                    }
                }
            }
}

class AttentionBits : public ::testing::TestWithParam<KvType> {};
INSTANTIATE_TEST_SUITE_P(attention, AttentionBits, ::testing::ValuesIn(kKvTypes),
                         [](const auto& type) { return type.param == KvType::f16 ? "f16" : "q8"; });

TEST_P(AttentionBits, are_the_same_whole_in_chunks_and_row_by_row) {
    test::Numbers numbers(11);
    for (const size_t hd : {32u, 64u, 112u})
        for (const size_t heads : {1u, 3u})
            for (const size_t window : {0u, 1u, 40u}) {
                const size_t tokens = 77;
                const Cache cache(kernel_table(Isa::scalar), tokens, hd, numbers, GetParam());
                const AttentionHead head{hd, heads, window, 0.25f, 0.0f, GetParam()};
                const auto q = numbers.floats(tokens * heads * hd, 2.0f);
                const size_t row = heads * hd;
                std::vector<float> single(q.size());
                for (size_t r = 0; r < tokens; ++r) {
                    const std::vector<float> one(q.begin() + static_cast<long>(r * row),
                                                 q.begin() + static_cast<long>((r + 1) * row));
                    const auto out = attend(kernel_table(Isa::scalar), head, cache, one, 1, r);
                    std::copy(out.begin(), out.end(), single.begin() + static_cast<long>(r * row));
                }
                for (const float x : single) ASSERT_TRUE(std::isfinite(x));
                for (const KernelTable* table : test::all_tables())
                    for (const size_t chunk : {1u, 2u, 5u, 33u, 77u})
                        for (size_t r = 0; r < tokens; r += chunk) {
                            const size_t n = std::min(chunk, tokens - r);
                            const std::vector<float> part(q.begin() + static_cast<long>(r * row),
                                                          q.begin() + static_cast<long>((r + n) * row));
                            const std::vector<float> expected(single.begin() + static_cast<long>(r * row),
                                                              single.begin() + static_cast<long>((r + n) * row));
                            ASSERT_TRUE(test::same_bits(attend(*table, head, cache, part, n, r), expected))
                                << table->name << " hd " << hd << " heads " << heads << " window " << window
                                << " chunk " << chunk << " row " << r;
                        }
            }
}

TEST_P(AttentionBits, are_the_same_split_at_spans) {
    test::Numbers numbers(12);
    const size_t hd = 64, heads = 3, tokens = 1300;
    const Cache cache(kernel_table(Isa::scalar), tokens, hd, numbers, GetParam());
    for (const size_t window : {0u, 600u}) {
        const AttentionHead head{hd, heads, window, 0.125f, 0.0f, GetParam()};
        const auto q = numbers.floats(2 * heads * hd, 2.0f);
        const size_t first_position = tokens - 2;
        const auto whole = attend(kernel_table(Isa::scalar), head, cache, q, 2, first_position);
        const size_t first_span = window != 0 ? (first_position + 1 - window) / kSpanKeys : 0;
        const size_t spans = first_position / kSpanKeys + 1 - first_span;
        for (const KernelTable* table : test::all_tables()) {
            const size_t stride = 2 * heads * attention_partial_floats(hd);
            std::vector<float> partials(spans * stride, std::numeric_limits<float>::quiet_NaN());
            test::Aligned scratch(attention_scratch_bytes(hd));
            for (size_t s = 0; s < spans; ++s)
                table->attention_span(head, {q.data(), heads * hd, hd, 2, first_position}, cache.pages.data(),
                                      first_span + s, &partials[s * stride], scratch.data());
            std::vector<float> out(q.size());
            table->attention_merge(head, 2, partials.data(), spans, stride, {out.data(), heads * hd, hd});
            EXPECT_TRUE(test::same_bits(out, whole)) << table->name << " window " << window;
        }
    }
}

// Of every table, the same bytes in the page; and its size is what is written, with a scale for each 32 elements.
TEST(attention, stores_the_same_bytes_in_pages_a_little_over_half_as_large) {
    EXPECT_EQ(kv_page_bytes(64, KvType::q8), kv_page_bytes(64) / 2 + 2 * 2 * kPageTokens * sizeof(float));
    test::Numbers numbers(14);
    const size_t hd = 80, tokens = 40;
    for (const KvType type : kKvTypes) {
        std::vector<Cache> caches;
        for (const KernelTable* table : test::all_tables()) {
            test::Numbers same(15);
            caches.emplace_back(*table, tokens, hd, same, type);
        }
        for (const Cache& cache : caches)
            for (size_t p = 0; p < cache.pages.size(); ++p)
                EXPECT_EQ(std::memcmp(cache.pages[p], caches.front().pages[p], kv_page_bytes(hd, type)), 0);
    }
}

TEST(attention, never_touches_pages_out_of_the_window) {
    test::Numbers numbers(13);
    const size_t hd = 32, tokens = 600;
    Cache cache(kernel_table(Isa::scalar), tokens, hd, numbers, KvType::f16);
    const AttentionHead head{hd, 1, 33, 0.2f, 0.0f};
    const auto q = numbers.floats(2 * hd);
    const auto before = attend(kernel_table(Isa::scalar), head, cache, q, 2, tokens - 2);
    for (size_t p = 0; p < (tokens - 1 - 33) / kPageTokens; ++p) cache.pages[p] = nullptr;
    for (const KernelTable* table : test::all_tables())
        EXPECT_TRUE(test::same_bits(attend(*table, head, cache, q, 2, tokens - 2), before)) << table->name;
}

}  // namespace cadans::kernels
