#include "engine/attention_work.h"

#include <algorithm>

namespace cadans::engine {
namespace {

constexpr uint32_t kSpan = kernels::kSpanKeys;

uint32_t spans_of(uint32_t tokens) { return (tokens + kSpan - 1) / kSpan; }

}  // namespace

AttentionWork::AttentionWork(const model::ModelSpec& spec, uint32_t window, uint32_t group, const EngineLimits& limits,
                             uint32_t threads)
    : head_{spec.head_dim, spec.heads / spec.kv_heads, window, spec.attention_scale, 0.0F, limits.kv},
      kv_heads_(spec.kv_heads),
      group_(group),
      q_width_(spec.q_width()),
      max_split_items_(threads > 1 ? (4 * threads + kv_heads_ - 1) / kv_heads_ : 0) {
    const uint32_t tiles = limits.max_rows / kTileRows + limits.max_items;
    const uint32_t spans = spans_of(limits.max_context_tokens);
    units_.reserve(size_t{tiles + max_split_items_ * spans} * kv_heads_);
    splits_.reserve(limits.max_items);
    partials_ = Aligned<float>(size_t{max_split_items_} * kv_heads_ * spans * head_.q_heads *
                               kernels::attention_partial_floats(head_.head_dim));
    for (uint32_t t = 0; t < threads; t++) {
        pages_.emplace_back(limits.max_context_tokens / kPageTokens + 1);
        scratch_.emplace_back(kernels::attention_scratch_bytes(head_.head_dim));
    }
}

void AttentionWork::plan(const Batch& batch) {
    units_.clear();
    splits_.clear();
    uint32_t single = 0;
    for (const StepItem& item : batch.items) single += item.count == 1;
    const bool few = single <= max_split_items_;  // enough whole rows keep every thread busy as they are
    size_t partials = 0;
    for (uint32_t i = 0; i < batch.items.size(); i++) {
        const StepItem& item = batch.items[i];
        const uint32_t last = item.first + item.count;
        Split split;
        if (item.count == 1 && few) {
            const auto window = static_cast<uint32_t>(head_.window);
            split.first_span = window != 0 && last > window ? (last - window) / kSpan : 0;
            split.spans = spans_of(last) - split.first_span;
            if (split.spans == 1) split.spans = 0;
            split.partials = partials;
        }
        partials += size_t{split.spans} * kv_heads_ * head_.q_heads * kernels::attention_partial_floats(head_.head_dim);
        splits_.push_back(split);
        for (uint32_t h = 0; h < kv_heads_; h++) {
            for (uint32_t s = 0; s < split.spans; s++) units_.push_back({i, h, 0, 1, split.first_span + s});
            if (split.spans != 0) continue;
            for (uint32_t row = 0; row < item.count; row += kTileRows)
                units_.push_back({i, h, row, std::min(kTileRows, item.count - row), kWhole});
        }
    }
}

void AttentionWork::run(uint32_t unit, const Batch& batch, const Layer& layer, const kernels::KernelTable& k,
                        uint32_t thread) {
    const Unit& u = units_[unit];
    const StepItem& item = batch.items[u.item];
    const uint32_t first_position = item.first + u.row;
    const auto window = static_cast<uint32_t>(head_.window);
    const uint32_t oldest = window != 0 && first_position + 1 > window ? first_position + 1 - window : 0;
    const std::byte** pages = pages_[thread].data();
    uint32_t page = oldest / kPageTokens, end = (first_position + u.rows - 1) / kPageTokens + 1;
    if (u.span != kWhole) {
        constexpr uint32_t kSpanPages = kSpan / kPageTokens;
        page = std::max(page, u.span * kSpanPages);
        end = std::min(end, (u.span + 1) * kSpanPages);
    }
    for (; page < end; page++) pages[page] = layer.arena.head(layer.layer, page_at(item, group_, page), u.kv_head);

    const size_t row = batch.first_row[u.item] + u.row;
    const size_t column = u.kv_head * head_.q_heads * head_.head_dim;
    const kernels::QueryRows rows{layer.q + row * layer.q_stride + column, layer.q_stride, head_.head_dim, u.rows,
                                  first_position};
    if (u.span == kWhole) {
        const kernels::AttentionOut out{layer.out + row * q_width_ + column, q_width_, head_.head_dim};
        return k.attention(head_, rows, pages, out, scratch_[thread].data());
    }
    const Split& split = splits_[u.item];
    const size_t floats = head_.q_heads * kernels::attention_partial_floats(head_.head_dim);
    float* partials =
        partials_.data() + split.partials + (u.kv_head * split.spans + u.span - split.first_span) * floats;
    k.attention_span(head_, rows, pages, u.span, partials, scratch_[thread].data());
}

void AttentionWork::merge(uint32_t row, const Batch& batch, const Layer& layer, const kernels::KernelTable& k) const {
    const Split& split = splits_[batch.item_of[row]];
    if (split.spans == 0) return;
    const size_t floats = head_.q_heads * kernels::attention_partial_floats(head_.head_dim);
    for (uint32_t h = 0; h < kv_heads_; h++) {
        const size_t column = h * head_.q_heads * head_.head_dim;
        k.attention_merge(head_, 1, partials_.data() + split.partials + h * split.spans * floats, split.spans, floats,
                          {layer.out + size_t{row} * q_width_ + column, q_width_, head_.head_dim});
    }
}

}  // namespace cadans::engine
