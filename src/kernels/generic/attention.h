// Paged attention of one kv head, whatever the vector type.
//
// Main idea: for scores the lanes are tokens, for values the lanes are elements of the head, so nothing is summed
// across lanes except a softmax block's sum (a fixed tree). A block is one page, 32 keys; a span is 512 keys from
// absolute position 0, folded from scratch and merged in order, so that a long row may be cut at spans over threads.
// Query rows and the query heads of a group share every page they read; what a page holds is in kv_pages.h.
// Source: Milakov & Gimelshein 2018.
#pragma once

#include "kernels/generic/fetch.h"
#include "kernels/generic/kv_pages.h"
#include "kernels/generic/math.h"
#include "kernels/kernel_table.h"

namespace cadans::kernels {

template <class V, class Page>
struct Attention {
    using F = typename V::F;

    /// Online softmax of one query row: maximum, sum, and acc[head_dim] elsewhere.
    struct Softmax {
        float max;
        float sum;
    };

    /// One query row of a tile and what it sees.
    struct Row {
        const float* q;
        size_t first;  ///< first key it sees
        size_t end;    ///< one past its last
        Softmax span;
        Softmax total;
        float* span_acc;
        float* total_acc;
        float* weights;  ///< [32] scores, then exp(score - max)
    };

    /// A tile of query rows and the page it looks at, as f32.
    struct Tile {
        Row rows[kAttentionTile];
        size_t n;
        size_t head_dim;
        float* keys;    ///< [head_dim][32]
        float* values;  ///< [32][head_dim]
    };

    static void attention(const AttentionHead& head, const QueryRows& rows, const std::byte* const* pages,
                          const AttentionOut& out, std::byte* scratch) {
        for (size_t m = 0; m < rows.n * head.q_heads; m += kAttentionTile) {
            Tile tile;
            open_tile(head, rows, m, scratch, tile);
            size_t first = SIZE_MAX, end = 0;
            for (size_t i = 0; i < tile.n; ++i) {
                if (tile.rows[i].first < first) first = tile.rows[i].first;
                if (tile.rows[i].end > end) end = tile.rows[i].end;
                clear(tile.rows[i].total, tile.rows[i].total_acc, head.head_dim);
            }
            for (size_t span = first / kSpanKeys; span * kSpanKeys < end; ++span) {
                fold_span(head, pages, span, tile);
                for (size_t i = 0; i < tile.n; ++i)
                    merge(tile.rows[i].span, tile.rows[i].span_acc, head.head_dim, tile.rows[i].total,
                          tile.rows[i].total_acc);
            }
            for (size_t i = 0; i < tile.n; ++i)
                finish(tile.rows[i].total, tile.rows[i].total_acc, head.head_dim, out_row(head, out, m + i));
        }
    }

    static void attention_span(const AttentionHead& head, const QueryRows& rows, const std::byte* const* pages,
                               size_t span, float* partials, std::byte* scratch) {
        const size_t stride = attention_partial_floats_of(head.head_dim);
        for (size_t m = 0; m < rows.n * head.q_heads; m += kAttentionTile) {
            Tile tile;
            open_tile(head, rows, m, scratch, tile);
            for (size_t i = 0; i < tile.n; ++i) tile.rows[i].span_acc = partials + (m + i) * stride;
            fold_span(head, pages, span, tile);
            for (size_t i = 0; i < tile.n; ++i) {
                float* end = tile.rows[i].span_acc + head.head_dim;
                for (size_t j = 0; j < 16; ++j) end[j] = 0.0f;
                end[0] = tile.rows[i].span.max;
                end[1] = tile.rows[i].span.sum;
            }
        }
    }

    static void attention_merge(const AttentionHead& head, size_t n_rows, const float* partials, size_t n_spans,
                                size_t span_stride, const AttentionOut& out) {
        const size_t stride = attention_partial_floats_of(head.head_dim);
        alignas(64) float acc[kMaxHeadDim];
        for (size_t m = 0; m < n_rows * head.q_heads; ++m) {
            Softmax total;
            clear(total, acc, head.head_dim);
            for (size_t s = 0; s < n_spans; ++s) {
                const float* part = partials + s * span_stride + m * stride;
                merge({part[head.head_dim], part[head.head_dim + 1]}, part, head.head_dim, total, acc);
            }
            finish(total, acc, head.head_dim, out_row(head, out, m));
        }
    }

  private:
    static constexpr size_t attention_partial_floats_of(size_t head_dim) { return head_dim + 16; }

    static float* out_row(const AttentionHead& head, const AttentionOut& out, size_t m) {
        return out.data + m / head.q_heads * out.row_stride + m % head.q_heads * out.head_stride;
    }

    static void open_tile(const AttentionHead& head, const QueryRows& rows, size_t m, std::byte* scratch, Tile& tile) {
        const size_t hd = head.head_dim, left = rows.n * head.q_heads - m;
        tile.n = left < kAttentionTile ? left : kAttentionTile;
        tile.head_dim = hd;
        tile.keys = reinterpret_cast<float*>(scratch);
        tile.values = tile.keys + hd * kPageTokens;
        float* at = tile.values + hd * kPageTokens;
        for (size_t i = 0; i < tile.n; ++i, at += 2 * hd + 64) {
            Row& row = tile.rows[i];
            const size_t r = (m + i) / head.q_heads, position = rows.first_position + r;
            row.q = rows.q + r * rows.row_stride + (m + i) % head.q_heads * rows.head_stride;
            row.end = position + 1;
            row.first = head.window != 0 && row.end > head.window ? row.end - head.window : 0;
            row.span_acc = at;
            row.total_acc = at + hd;
            row.weights = at + 2 * hd;
        }
    }

    static void clear(Softmax& state, float* acc, size_t head_dim) {
        state = {-__builtin_inff(), 0.0f};
        for (size_t d = 0; d < head_dim; d += 16) V::store(acc + d, V::set1(0.0f));
    }

    static float exp_one(float x) {
        alignas(64) float lanes[16];
        V::store(lanes, exp_lanes<V>(V::set1(x)));
        return lanes[0];
    }

    /// Joins a later span into the total. An empty side changes no bit of the other.
    static void merge(const Softmax& span, const float* span_acc, size_t head_dim, Softmax& total, float* total_acc) {
        if (span.sum == 0.0f) return;
        if (total.sum == 0.0f) {
            total = span;
            for (size_t d = 0; d < head_dim; d += 16) V::store(total_acc + d, V::load(span_acc + d));
            return;
        }
        const float max = total.max > span.max ? total.max : span.max;
        const float keep = exp_one(total.max - max), join = exp_one(span.max - max);
        total.sum = fma_one(span.sum, join, total.sum * keep);
        total.max = max;
        const F k = V::set1(keep), j = V::set1(join);
        for (size_t d = 0; d < head_dim; d += 16)
            V::store(total_acc + d, V::fma(V::load(span_acc + d), j, V::mul(V::load(total_acc + d), k)));
    }

    static float fma_one(float a, float b, float c) {
        alignas(64) float lanes[16];
        V::store(lanes, V::fma(V::set1(a), V::set1(b), V::set1(c)));
        return lanes[0];
    }

    static void finish(const Softmax& total, const float* acc, size_t head_dim, float* out) {
        const F sum = V::set1(total.sum);
        for (size_t d = 0; d < head_dim; d += 16) V::store(out + d, V::div(V::load(acc + d), sum));
    }

    /// What one row sees of one page: tokens [first, end), and the factor that its accumulator must take.
    struct Sight {
        Row* row;
        size_t first;
        size_t end;
        float keep;
    };

    /// Folds keys [512 span, 512 (span + 1)) into span and span_acc of every row.
    static void fold_span(const AttentionHead& head, const std::byte* const* pages, size_t span, Tile& tile) {
        constexpr size_t kSpanPages = kSpanKeys / kPageTokens;
        for (size_t i = 0; i < tile.n; ++i) clear(tile.rows[i].span, tile.rows[i].span_acc, head.head_dim);
        size_t end_page = 0;  // one past the last page that anyone sees
        for (size_t i = 0; i < tile.n; ++i) {
            const size_t end = (tile.rows[i].end + kPageTokens - 1) / kPageTokens;
            if (end > end_page) end_page = end;
        }
        if (end_page > (span + 1) * kSpanPages) end_page = (span + 1) * kSpanPages;
        for (size_t page = span * kSpanPages; page < end_page; ++page) {
            const size_t start = page * kPageTokens;
            Sight sights[kAttentionTile];
            size_t n = 0;
            for (size_t i = 0; i < tile.n; ++i) {
                Row& row = tile.rows[i];
                if (row.first >= start + kPageTokens || row.end <= start) continue;
                const size_t first = row.first > start ? row.first - start : 0;
                const size_t end = row.end - start < kPageTokens ? row.end - start : kPageTokens;
                sights[n++] = {&row, first, end, 1.0f};
            }
            if (n > 0) fold_page(head, pages[page], page + 1 < end_page ? pages[page + 1] : nullptr, tile, sights, n);
        }
    }

    /// `next` is the page behind it, if there is one: it comes from memory while this one is computed.
    static void fold_page(const AttentionHead& head, const std::byte* bytes, const std::byte* next, const Tile& tile,
                          Sight* sights, size_t n) {
        const size_t hd = head.head_dim, half_page = kv_page_bytes(hd, Page::kType) / 2;
        const Page page(bytes, hd);
        const WidePage<V> wide{tile.keys, tile.values, hd};
        const bool widens = V::kWidensPages && n > V::kAttentionRows;
        if constexpr (V::kWidensPages) {
            if (widens) {
                for (size_t d = 0; d < hd; ++d)
                    for (size_t t = 0; t < kPageTokens; t += 16)
                        V::store(tile.keys + d * kPageTokens + t, page.key(d, t));
                score_rows(wide, hd, sights, n);
            }
        }
        if (!widens) score_rows(page, hd, sights, n);
        if (next != nullptr) fetch_ahead(next, half_page);
        soften(head, sights, n);
        size_t first = 0, end = kPageTokens, first_used = kPageTokens, end_used = 0;
        for (size_t i = 0; i < n; ++i) {
            if (sights[i].first > first) first = sights[i].first;
            if (sights[i].end < end) end = sights[i].end;
            if (sights[i].first < first_used) first_used = sights[i].first;
            if (sights[i].end > end_used) end_used = sights[i].end;
        }
        if (first > end) first = end = 0;  // no token that all see: each row goes alone
        if constexpr (V::kWidensPages) {
            if (widens) {
                for (size_t t = first_used; t < end_used; ++t)
                    for (size_t d = 0; d < hd; d += 16) V::store(tile.values + t * hd + d, page.value(t, d));
                sum_values(wide, hd, first, end, sights, n);
            }
        }
        if (!widens) sum_values(page, hd, first, end, sights, n);
        if (next != nullptr) fetch_ahead(next + half_page, half_page);
    }

    template <class Source>
    static void score_rows(const Source& page, size_t head_dim, Sight* sights, size_t n) {
        in_even_parts<1, V::kAttentionRows>(
            n, [&](size_t i, auto rows) __attribute__((always_inline)) {
                constexpr size_t kTokens = 16 * V::score_vectors(rows.value);
                for (size_t t = 0; t < kPageTokens; t += kTokens) score_tile<rows.value>(page, head_dim, t, sights + i);
            });
    }

    /// q . k for kRows rows and a vector or two of tokens from `first` on, elements ascending.
    template <size_t kRows, class Source>
    static void score_tile(const Source& page, size_t head_dim, size_t first, Sight* sights) {
        constexpr size_t kVectors = V::score_vectors(kRows);
        F score[kRows][kVectors];
        const float* q[kRows];
        unroll<kRows>([&](auto n) __attribute__((always_inline)) {
            q[n.value] = sights[n.value].row->q;
            unroll<kVectors>([&](auto v) __attribute__((always_inline)) { score[n.value][v.value] = V::set1(0.0f); });
        });
        for (size_t d = 0; d < head_dim; ++d) {
            F key[kVectors];
            unroll<kVectors>([&](auto v)
                                 __attribute__((always_inline)) { key[v.value] = page.key(d, first + 16 * v.value); });
            unroll<kRows>([&](auto n) __attribute__((always_inline)) {
                const F a = V::set1(q[n.value][d]);
                unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
                    score[n.value][v.value] = V::fma(key[v.value], a, score[n.value][v.value]);
                });
            });
        }
        unroll<kRows>([&](auto n) __attribute__((always_inline)) {
            unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
                V::store(sights[n.value].row->weights + first + 16 * v.value, score[n.value][v.value]);
            });
        });
    }

    /// Scores to weights exp(score - max), with each row's maximum and sum brought up to date. What is one number a row
    /// (the factor of what came before) is computed for 16 rows at a time.
    static void soften(const AttentionHead& head, Sight* sights, size_t n) {
        constexpr size_t kRows = (kAttentionTile + 15) / 16 * 16;
        alignas(64) float old_max[kRows] = {}, max[kRows] = {}, keep[kRows], sum[kRows] = {}, block_sum[kRows] = {};
        for (size_t i = 0; i < n; ++i) {
            const Softmax& state = sights[i].row->span;
            const float block_max = masked_max(head, sights[i]);
            old_max[i] = state.max;
            sum[i] = state.sum;
            max[i] = block_max > state.max ? block_max : state.max;
        }
        for (size_t i = 0; i < n; i += 16)
            V::store(keep + i, exp_lanes<V>(V::sub(V::load(old_max + i), V::load(max + i))));
        for (size_t i = 0; i < n; ++i) {
            float* weights = sights[i].row->weights;
            const F shift = V::set1(max[i]);
            const F low = exp_lanes<V>(V::sub(V::load(weights), shift));
            const F high = exp_lanes<V>(V::sub(V::load(weights + 16), shift));
            V::store(weights, low);
            V::store(weights + 16, high);
            block_sum[i] = V::tree_sum(V::add(low, high));
        }
        for (size_t i = 0; i < n; i += 16)
            V::store(sum + i, V::fma(V::load(sum + i), V::load(keep + i), V::load(block_sum + i)));
        for (size_t i = 0; i < n; ++i) {
            sights[i].row->span = {max[i], sum[i]};
            sights[i].keep = keep[i];
        }
    }

    /// Scales, caps and masks the scores of one row in place; returns the largest.
    [[gnu::always_inline]] static float masked_max(const AttentionHead& head, const Sight& sight) {
        float* weights = sight.row->weights;
        F low = V::mul(V::load(weights), V::set1(head.scale));
        F high = V::mul(V::load(weights + 16), V::set1(head.scale));
        if (head.softcap != 0.0f) {
            low = softcap_lanes<V>(low, V::set1(head.softcap));
            high = softcap_lanes<V>(high, V::set1(head.softcap));
        }
        if (sight.first > 0 || sight.end < kPageTokens) {
            const F lanes = V::to_float(V::ilanes()), sixteen = V::set1(16.0f);
            low = keep_seen(low, lanes, sight);
            high = keep_seen(high, V::add(lanes, sixteen), sight);
        }
        V::store(weights, low);
        V::store(weights + 16, high);
        return V::reduce_max(V::max(low, high));
    }

    static F keep_seen(F scores, F tokens, const Sight& sight) {
        const F none = V::set1(-__builtin_inff());
        scores = V::select_ge(tokens, V::set1(static_cast<float>(sight.first)), scores, none);
        return V::select_gt(V::set1(static_cast<float>(sight.end)), tokens, scores, none);
    }

    /// acc = acc * keep + sum of weight * value, tokens ascending; [first, end) is what every row sees.
    template <class Source>
    static void sum_values(const Source& page, size_t head_dim, size_t first, size_t end, Sight* sights, size_t n) {
        for (size_t j = 0; j < n; ++j)
            if (sights[j].first < first) sum_range<1>(page, head_dim, sights[j].first, first, sights + j);
        if (first < end)
            in_even_parts<1, V::kAttentionRows>(
                n, [&](size_t i, auto rows) __attribute__((always_inline)) {
                    sum_range<rows.value>(page, head_dim, first, end, sights + i);
                });
        for (size_t j = 0; j < n; ++j)
            if (sights[j].end > end)
                sum_range<1>(page, head_dim, sights[j].first > end ? sights[j].first : end, sights[j].end, sights + j);
    }

    template <size_t kRows, class Source>
    static void sum_range(const Source& page, size_t head_dim, size_t first, size_t end, Sight* sights) {
        constexpr size_t kVectors = V::value_vectors(kRows), kStep = 16 * kVectors;
        size_t d = 0;
        for (; d + kStep <= head_dim; d += kStep) sum_block<kRows, kVectors>(page, d, first, end, sights);
        for (; d < head_dim; d += 16) sum_block<kRows, 1>(page, d, first, end, sights);
        for (size_t n = 0; n < kRows; ++n) sights[n].keep = 1.0f;  // taken once
    }

    template <size_t kRows, size_t kVectors, class Source>
    static void sum_block(const Source& page, size_t d, size_t first, size_t end, Sight* sights) {
        F acc[kRows][kVectors];
        const float* weights[kRows];
        unroll<kRows>([&](auto n) __attribute__((always_inline)) {
            const F keep = V::set1(sights[n.value].keep);
            weights[n.value] = sights[n.value].row->weights;
            unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
                acc[n.value][v.value] = V::mul(V::load(sights[n.value].row->span_acc + d + 16 * v.value), keep);
            });
        });
        for (size_t t = first; t < end; ++t) {
            F value[kVectors];
            unroll<kVectors>([&](auto v)
                                 __attribute__((always_inline)) { value[v.value] = page.value(t, d + 16 * v.value); });
            unroll<kRows>([&](auto n) __attribute__((always_inline)) {
                const F weight = V::set1(weights[n.value][t]);
                unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
                    acc[n.value][v.value] = V::fma(value[v.value], weight, acc[n.value][v.value]);
                });
            });
        }
        unroll<kRows>([&](auto n) __attribute__((always_inline)) {
            unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
                V::store(sights[n.value].row->span_acc + d + 16 * v.value, acc[n.value][v.value]);
            });
        });
    }
};

/// Attention over pages of either form, as the table has it.
template <class V>
struct AnyAttention {
    using Halves = Attention<V, HalfPage<V>>;
    using Bytes = Attention<V, BytePage<V>>;

    static void kv_store(KvType type, std::byte* page, size_t token, const float* k, const float* v, size_t head_dim) {
        if (type == KvType::f16)
            HalfPage<V>::store(page, token, k, v, head_dim);
        else
            BytePage<V>::store(page, token, k, v, head_dim);
    }
    static void attention(const AttentionHead& head, const QueryRows& rows, const std::byte* const* pages,
                          const AttentionOut& out, std::byte* scratch) {
        if (head.kv == KvType::f16)
            Halves::attention(head, rows, pages, out, scratch);
        else
            Bytes::attention(head, rows, pages, out, scratch);
    }
    static void attention_span(const AttentionHead& head, const QueryRows& rows, const std::byte* const* pages,
                               size_t span, float* partials, std::byte* scratch) {
        if (head.kv == KvType::f16)
            Halves::attention_span(head, rows, pages, span, partials, scratch);
        else
            Bytes::attention_span(head, rows, pages, span, partials, scratch);
    }
};

}  // namespace cadans::kernels
