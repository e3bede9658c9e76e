// How long a step will take: a few integer coefficients, fitted elsewhere, and the sums that they multiply.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "flow/step.h"

namespace cadans {

/// What a step asks of the machine, as sums over its items. Grows by StepCost::add().
struct StepShape {
    uint32_t rows = 0;            ///< tokens computed
    uint32_t logits_rows = 0;     ///< rows that go through the head: drawn from or scored
    uint64_t prompt_context = 0;  ///< over rows of items of several rows: keys that the row looks at
    uint64_t decode_context = 0;  ///< over items of one row: keys that the row looks at
    uint64_t verify_context = 0;  ///< over rows of items with drafts: keys that the row looks at

    friend bool operator==(const StepShape&, const StepShape&) = default;

    constexpr StepShape& operator+=(const StepShape& more) noexcept {
        rows += more.rows;
        logits_rows += more.logits_rows;
        prompt_context += more.prompt_context;
        decode_context += more.decode_context;
        verify_context += more.verify_context;
        return *this;
    }
    /// `less` was added before.
    constexpr StepShape& operator-=(const StepShape& less) noexcept {
        rows -= less.rows;
        logits_rows -= less.logits_rows;
        prompt_context -= less.prompt_context;
        decode_context -= less.decode_context;
        verify_context -= less.verify_context;
        return *this;
    }
};

/// One measured step.
struct StepSample {
    StepShape shape;
    Nanos time = 0;
};

/// Predicted time of a step in picoseconds:
///   max(weights_ps, row_ps * rows) + step_ps + prompt_key_ps * (prompt_context + verify_context)
///     + decode_key_ps * decode_context + logits_ps * logits_rows
/// times scales / 1024. The first term is the roofline of the layers: few rows wait for the weights to arrive,
/// many for the arithmetic. Prompt rows share the keys that they read, as drafts do with the row before them; decode
/// rows do not: two coefficients. Four scales follow what is measured: of steps of single rows only; of these with
/// drafts; and of steps with a prompt's rows, one of the prompt's keys and one of all the rest, for a long prompt's
/// steps turn from one into the other. Integers only, so that whoever decides by it decides the same everywhere. Within
/// the bounds below every prediction of a step of up to 2^12 rows with 2^20 keys each stays within 63 bits.
struct StepCost {
    static constexpr uint64_t kMostPerRow = uint64_t{1} << 40;  ///< about 1 s; also of weights_ps and step_ps
    static constexpr uint64_t kMostPerKey = uint64_t{1} << 28;  ///< about 0.27 ms
    static constexpr uint32_t kFewRows = 16;                    ///< of an item: more are a prompt's, whatever they are
    static constexpr uint32_t kWhole = 1024;                    ///< scales and window_share count in 1/1024
    static constexpr uint32_t kLeastScale = kWhole / 4, kMostScale = 4 * kWhole;

    uint64_t weights_ps = 0;             ///< reading all weights of the layers once
    uint64_t row_ps = 0;                 ///< arithmetic of one row through all layers
    uint64_t step_ps = 0;                ///< whatever a step costs anyway
    uint64_t prompt_key_ps = 0;          ///< one row looking at one key, all layers, in an item of several rows
    uint64_t decode_key_ps = 0;          ///< the same in an item of one row
    uint64_t logits_ps = 0;              ///< one row through the head
    uint32_t window_tokens = 0;          ///< layers with a sliding window see so many keys; 0: there are none
    uint32_t window_share = 0;           ///< how many of the layers these are, in 1/1024
    uint32_t decode_scale = kWhole;      ///< of steps of single rows only
    uint32_t prompt_scale = kWhole;      ///< of steps with a prompt's rows, without the keys that these look at
    uint32_t prompt_key_scale = kWhole;  ///< of these keys
    uint32_t verify_scale = kWhole;      ///< of steps with drafts and without a prompt's rows

    friend bool operator==(const StepCost&, const StepCost&) = default;

    /// Keys that `rows` rows from position `first` on look at, an average over layers.
    constexpr uint64_t keys(uint64_t first, uint64_t rows) const noexcept {
        const uint64_t all = sum_to(first + rows) - sum_to(first);
        if (window_tokens == 0 || window_share == 0) return all;
        const uint64_t near = windowed_sum(first + rows) - windowed_sum(first);
        return (all * (kWhole - window_share) + near * window_share) / kWhole;
    }

    /// Adds one item to a shape: `rows` rows (at least 1) from position `first` on, `logits` of them scored or drawn
    /// from.
    constexpr void add(StepShape& shape, uint32_t first, uint32_t rows, uint32_t logits) const noexcept {
        shape.rows += rows;
        shape.logits_rows += logits;
        (rows > 1 ? shape.prompt_context : shape.decode_context) += keys(first, rows);
    }

    /// Adds an item of one row that is drawn from, and `drafts` behind it.
    constexpr void add_drafts(StepShape& shape, uint32_t first, uint32_t drafts) const noexcept {
        shape.rows += 1 + drafts;
        shape.logits_rows += 1 + drafts;
        (drafts > 0 ? shape.verify_context : shape.decode_context) += keys(first, 1 + drafts);
    }

    /// Adds one for whom a smaller model computes `rows` known tokens from `first` on; `draws`: and draws from the
    /// last.
    constexpr void add_catching_up(StepShape& shape, uint32_t first, uint32_t rows, bool draws) const noexcept {
        shape.rows += rows;
        shape.logits_rows += draws;
        (rows > kFewRows ? shape.prompt_context : shape.decode_context) += keys(first, rows);
    }

    /// Adds what a smaller model does for an item in its pass number `pass`; false: nothing any more.
    bool add_pass(StepShape& shape, const Drafting& drafting, uint32_t pass) const noexcept {
        if (pass > 0 && pass >= drafting.guesses) return false;
        if (pass == 0)
            add_catching_up(shape, drafting.first, drafting.count, drafting.guesses > 0);
        else
            add_catching_up(shape, drafting.first + drafting.count + pass - 1, 1, true);
        return true;
    }

    void add(StepShape& shape, const StepItem& item) const noexcept {
        if (item.drafts > 0) return add_drafts(shape, item.first, item.drafts);
        add(shape, item.first, item.count, logits_of(item));
    }

    /// The shape of a plan.
    StepShape shape_of(const StepPlan& plan) const noexcept {
        StepShape shape;
        for (const StepItem& item : plan.items) add(shape, item);
        return shape;
    }

    /// Rows of an item that need logits.
    static constexpr uint32_t logits_of(const StepItem& item) noexcept {
        if (item.score) return item.count;
        return item.sample ? 1 + item.drafts : 0;
    }

    /// Picoseconds, before the scales. 0 for a step without rows.
    constexpr uint64_t unscaled_ps(const StepShape& shape) const noexcept {
        if (shape.rows == 0) return 0;
        return std::max(weights_ps, row_ps * shape.rows) + step_ps +
               prompt_key_ps * (shape.prompt_context + shape.verify_context) + decode_key_ps * shape.decode_context +
               logits_ps * shape.logits_rows;
    }

    /// Scaled picoseconds of the keys that a prompt's rows look at.
    constexpr uint64_t prompt_keys_ps(const StepShape& shape) const noexcept {
        return prompt_key_ps * shape.prompt_context / kWhole * prompt_key_scale;
    }

    /// Picoseconds. 0 for a step without rows.
    constexpr uint64_t scaled_ps(const StepShape& shape) const noexcept {
        const uint64_t all = unscaled_ps(shape);
        if (shape.prompt_context == 0) return all / kWhole * (shape.verify_context > 0 ? verify_scale : decode_scale);
        return (all - prompt_key_ps * shape.prompt_context) / kWhole * prompt_scale + prompt_keys_ps(shape);
    }

    /// Predicted time in whole microseconds, rounded up.
    constexpr Micros predict(const StepShape& shape) const noexcept {
        constexpr uint64_t kPicosPerMicro = 1'000'000;
        return static_cast<Micros>((scaled_ps(shape) + kPicosPerMicro - 1) / kPicosPerMicro);
    }

  private:
    static constexpr uint64_t sum_to(uint64_t n) noexcept { return n * (n + 1) / 2; }

    /// Sum over the first n rows of min(keys before and at the row, window).
    constexpr uint64_t windowed_sum(uint64_t n) const noexcept {
        const uint64_t w = window_tokens;
        return n <= w ? sum_to(n) : sum_to(w) + (n - w) * w;
    }
};

}  // namespace cadans
