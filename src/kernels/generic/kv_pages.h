// Pages of keys and values as a row of attention reads them: f16, or bytes with a scale for each 32 of a token.
//
// Main idea: whatever a page holds, an element is one f32, the same on every instruction set; attention asks for
// sixteen at a time, tokens of one element of the head for keys, elements of one token for values.
#pragma once

#include "kernels/generic/rows.h"
#include "kernels/kernel_table.h"

namespace cadans::kernels {

/// Keys [head_dim][32 tokens], then values [32 tokens][head_dim], as f16.
template <class V>
struct HalfPage {
    using F = typename V::F;
    static constexpr KvType kType = KvType::f16;
    const uint16_t* keys;
    const uint16_t* values;
    size_t head_dim;

    HalfPage(const std::byte* page, size_t hd)
        : keys(reinterpret_cast<const uint16_t*>(page)), values(keys + hd * kPageTokens), head_dim(hd) {}

    [[gnu::always_inline]] F key(size_t element, size_t token) const {
        return V::load_f16(keys + element * kPageTokens + token);
    }
    [[gnu::always_inline]] F value(size_t token, size_t element) const {
        return V::load_f16(values + token * head_dim + element);
    }

    static void store(std::byte* page, size_t token, const float* k, const float* v, size_t hd) {
        uint16_t halves[16];
        auto* keys = reinterpret_cast<uint16_t*>(page);
        uint16_t* values = keys + hd * kPageTokens + token * hd;
        for (size_t d = 0; d < hd; d += 16) {
            V::store_f16(halves, V::load(k + d));
            for (size_t i = 0; i < 16; ++i) keys[(d + i) * kPageTokens + token] = halves[i];
            V::store_f16(values + d, V::load(v + d));
        }
    }
};

/// The same as s8, then the f32 scales: of keys [groups of 32 elements][32 tokens], of values [32 tokens][groups].
template <class V>
struct BytePage {
    using F = typename V::F;
    static constexpr KvType kType = KvType::q8;
    const int8_t* keys;
    const int8_t* values;
    const float* key_scales;
    const float* value_scales;
    size_t head_dim;

    BytePage(const std::byte* page, size_t hd)
        : keys(reinterpret_cast<const int8_t*>(page)),
          values(keys + hd * kPageTokens),
          key_scales(reinterpret_cast<const float*>(values + hd * kPageTokens)),
          value_scales(key_scales + groups_of(hd) * kPageTokens),
          head_dim(hd) {}

    [[gnu::always_inline]] F key(size_t element, size_t token) const {
        return V::mul(V::to_float(V::widen_s8(keys + element * kPageTokens + token)),
                      V::load(key_scales + element / kGroup * kPageTokens + token));
    }
    [[gnu::always_inline]] F value(size_t token, size_t element) const {
        return V::mul(V::to_float(V::widen_s8(values + token * head_dim + element)),
                      V::set1(value_scales[token * groups_of(head_dim) + element / kGroup]));
    }

    static void store(std::byte* page, size_t token, const float* k, const float* v, size_t hd) {
        auto* keys = reinterpret_cast<int8_t*>(page);
        int8_t* values = keys + hd * kPageTokens;
        auto* key_scales = reinterpret_cast<float*>(values + hd * kPageTokens);
        float* value_scales = key_scales + groups_of(hd) * kPageTokens;
        for (size_t d = 0; d < hd; d += kGroup) {
            const size_t count = hd - d < kGroup ? hd - d : kGroup, g = d / kGroup;
            ActivationGroup group;
            quantize(k + d, count, group);
            for (size_t i = 0; i < count; ++i) keys[(d + i) * kPageTokens + token] = group.codes[i];
            key_scales[g * kPageTokens + token] = group.scale;
            quantize(v + d, count, group);
            for (size_t i = 0; i < count; ++i) values[token * hd + d + i] = group.codes[i];
            value_scales[token * groups_of(hd) + g] = group.scale;
        }
    }

  private:
    static constexpr size_t groups_of(size_t hd) { return (hd + kGroup - 1) / kGroup; }
    /// 16 or 32 elements.
    static void quantize(const float* x, size_t count, ActivationGroup& out) {
        Rows<V>::quantize_group(V::load(x), count > 16 ? V::load(x + 16) : V::set1(0.0f), out);
    }
};

/// A page that was read once and lies in scratch as f32, as HalfPage lies.
template <class V>
struct WidePage {
    using F = typename V::F;
    const float* keys;
    const float* values;
    size_t head_dim;

    [[gnu::always_inline]] F key(size_t element, size_t token) const {
        return V::load(keys + element * kPageTokens + token);
    }
    [[gnu::always_inline]] F value(size_t token, size_t element) const {
        return V::load(values + token * head_dim + element);
    }
};

}  // namespace cadans::kernels
