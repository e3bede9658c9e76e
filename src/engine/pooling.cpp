#include "engine/pooling.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace cadans::engine {

bool pool_rows(const StepItem& item, uint32_t first_row, const Forward& forward, std::span<float> row) {
    Embedding& out = *item.embedding;
    check(out.vector.size() == row.size() && out.sum.size() == row.size(), "an embedding has the model's width");
    if (item.first == 0) {
        std::ranges::fill(out.sum, 0.0);
        out.rows = 0;
    }
    const size_t last = item.known.size() - 1;
    for (uint32_t t = 0; t < item.count; t++) {
        const uint32_t position = item.first + t;
        if (out.pooling == Pooling::first && position != 0) break;
        if (out.pooling == Pooling::last && position != last) continue;
        forward.last_layer(first_row + t, row.data());
        for (size_t d = 0; d < row.size(); d++) out.sum[d] += static_cast<double>(row[d]);
        out.rows++;
    }
    if (item.first + item.count <= last) return true;
    check(out.rows > 0, "a vector has rows");
    for (size_t d = 0; d < row.size(); d++) out.vector[d] = static_cast<float>(out.sum[d] / out.rows);
    return std::ranges::all_of(out.vector, [](float value) { return std::isfinite(value); });
}

}  // namespace cadans::engine
