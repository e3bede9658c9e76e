#include "history/summary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <string_view>

namespace cadans::history {
namespace {

/// Values of one figure, collected before they are ranked.
struct Collected {
    std::vector<double> values;

    void add(double value) { values.push_back(value); }
    template <class Number>
    void add(const std::optional<Number>& value) {
        if (value) values.push_back(static_cast<double>(*value));
    }
    std::optional<Spread> spread() { return spread_of(std::move(values)); }
};

Figures figures_of_some(std::span<const FinishedRequest* const> rows) {
    Figures out;
    Collected prompt, ttft, rate, queue, total;
    GapCounts gaps;
    for (const FinishedRequest* row : rows) {
        out.count++;
        prompt.add(row->prompt_ns);
        ttft.add(row->ttft_ns);
        rate.add(row->output_tokens_per_second);
        queue.add(static_cast<double>(row->queue_ns));
        total.add(static_cast<double>(row->total_ns));
        gaps.add(row->gaps);
    }
    out.prompt_ns = prompt.spread();
    out.ttft_ns = ttft.spread();
    out.gap_ns = spread_of(gaps);
    out.output_tokens_per_second = rate.spread();
    out.queue_ns = queue.spread();
    out.total_ns = total.spread();
    return out;
}

ByStart by_start(std::span<const FinishedRequest* const> rows) {
    std::vector<const FinishedRequest*> warm, cold;
    for (const FinishedRequest* row : rows) (row->cold ? cold : warm).push_back(row);
    return {figures_of_some(warm), figures_of_some(cold)};
}

LengthFigures length_figures(std::span<const FinishedRequest* const> rows) {
    LengthFigures out;
    Collected ttft, rate;
    for (const FinishedRequest* row : rows) {
        out.count++;
        ttft.add(row->ttft_ns);
        rate.add(row->prompt_tokens_per_second);
    }
    out.ttft_ns = ttft.spread();
    out.prompt_tokens_per_second = rate.spread();
    return out;
}

}  // namespace

std::optional<Spread> spread_of(std::vector<double> values) {
    if (values.empty()) return std::nullopt;
    std::sort(values.begin(), values.end());
    const auto at = [&](size_t percent) {
        const size_t rank = (values.size() * percent + 99) / 100;
        return values[std::max<size_t>(rank, 1) - 1];
    };
    return Spread{values.size(), at(50), at(90), at(99), values.back()};
}

std::optional<Spread> spread_of(const GapCounts& gaps) {
    if (gaps.count() == 0) return std::nullopt;
    const auto at = [&](uint32_t percent) { return static_cast<double>(*gaps.percentile(percent)); };
    return Spread{gaps.count(), at(50), at(90), at(99), static_cast<double>(gaps.max())};
}

std::vector<const FinishedRequest*> first_rows(std::span<const FinishedRequest> rows, Order order, size_t most) {
    std::vector<const FinishedRequest*> first;
    first.reserve(rows.size());
    for (auto row = rows.rbegin(); row != rows.rend(); ++row) first.push_back(&*row);
    if (order == Order::slowest)
        std::ranges::stable_sort(first, std::greater<>(), [](const FinishedRequest* row) { return wait_of(*row); });
    first.resize(std::min(most, first.size()));
    return first;
}

ByStart figures_of(std::span<const FinishedRequest> rows) {
    std::vector<const FinishedRequest*> all;
    all.reserve(rows.size());
    for (const FinishedRequest& row : rows) all.push_back(&row);
    return by_start(all);
}

std::vector<Bucket> buckets_of(std::span<const FinishedRequest> rows, int64_t from_ms, int64_t to_ms, uint32_t count) {
    count = std::max<uint32_t>(count, 1);
    const double width = static_cast<double>(std::max<int64_t>(to_ms - from_ms, 1)) / count;
    const auto edge = [&](uint32_t i) {
        return i == count ? to_ms : from_ms + static_cast<int64_t>(std::floor(width * i));
    };
    std::vector<Bucket> buckets(count);
    std::vector<std::vector<const FinishedRequest*>> inside(count);
    for (uint32_t i = 0; i < count; i++) {
        buckets[i].from_ms = edge(i);
        buckets[i].to_ms = edge(i + 1);
    }
    for (const FinishedRequest& row : rows) {
        if (row.unix_ms < from_ms || row.unix_ms >= to_ms) continue;
        const auto after = std::upper_bound(buckets.begin(), buckets.end(), row.unix_ms,
                                            [](int64_t ms, const Bucket& bucket) { return ms < bucket.to_ms; });
        const auto i = static_cast<size_t>(std::min(after, buckets.end() - 1) - buckets.begin());
        Bucket& bucket = buckets[i];
        inside[i].push_back(&row);
        bucket.count++;
        for (size_t o = 0; o < kOutcomes.size(); o++) bucket.outcomes[o] += row.outcome == kOutcomes[o];
        bucket.computed_tokens += row.computed_tokens;
        bucket.cached_tokens += row.cached_tokens;
        bucket.output_tokens += row.output_tokens;
        bucket.stalls += row.stalls;
    }
    for (uint32_t i = 0; i < count; i++) buckets[i].figures = by_start(inside[i]);
    return buckets;
}

std::vector<LengthClass> lengths_of(std::span<const FinishedRequest> rows) {
    struct Members {
        std::vector<const FinishedRequest*> warm, cold, cached;
    };
    std::map<uint32_t, Members> classes;  // by the number of bits
    for (const FinishedRequest& row : rows) {
        if (row.prompt_tokens == 0) continue;
        Members& members = classes[static_cast<uint32_t>(std::bit_width(row.prompt_tokens))];
        const bool found = uint64_t{row.cached_tokens} * 2 >= row.prompt_tokens;
        (row.cold ? members.cold : found ? members.cached : members.warm).push_back(&row);
    }
    std::vector<LengthClass> out;
    for (const auto& [bits, members] : classes) {
        LengthClass each;
        each.from_tokens = uint32_t{1} << (bits - 1);
        each.to_tokens = each.from_tokens + (each.from_tokens - 1);
        each.warm = length_figures(members.warm);
        each.cold = length_figures(members.cold);
        each.cached = length_figures(members.cached);
        out.push_back(std::move(each));
    }
    return out;
}

Savings savings_of(std::span<const FinishedRequest> rows) {
    Savings out;
    Collected per_token;
    for (const FinishedRequest& row : rows) {
        out.cached_tokens += row.cached_tokens;
        out.computed_tokens += row.computed_tokens;
        // A prompt found but for its last token tells the time of a step, not of reading.
        const bool read = row.computed_tokens >= 32 && row.prompt_tokens_per_second.value_or(0) > 0;
        if (read) per_token.add(1e9 / *row.prompt_tokens_per_second);
    }
    if (const auto spread = per_token.spread())
        out.saved_ns = static_cast<Nanos>(std::llround(spread->p50 * static_cast<double>(out.cached_tokens)));
    return out;
}

}  // namespace cadans::history
