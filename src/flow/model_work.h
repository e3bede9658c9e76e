// What computing a model asks of a machine, in operations and bytes: the numerators of its shares.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cadans {

/// One multiplication and one addition are two operations. Counted, not measured: from the shapes of the matrices.
struct ModelWork {
    double operations_per_row = 0;         ///< the matrices of the layers
    double operations_per_key = 0;         ///< a row looks at one key, all layers
    double operations_per_logits_row = 0;  ///< the head
    double weight_bytes = 0;               ///< the layers' matrices: read once a step
    double head_bytes = 0;                 ///< read once a step that draws
    double bytes_per_key = 0;              ///< key and value of one token, all layers
    uint32_t window_tokens = 0;            ///< layers with a sliding window see so many keys; 0: there are none
    double window_share = 0;               ///< how many of the layers these are, 0 .. 1
};

/// Of a step, or of many.
struct Work {
    double operations = 0, bytes = 0;

    Work& operator+=(const Work& other) noexcept {
        operations += other.operations;
        bytes += other.bytes;
        return *this;
    }
};

/// Keys that rows at positions 0 .. rows - 1 look at, summed, where none looks further back than `window` (0: at all).
constexpr double keys_of(double rows, double window) noexcept {
    const double near = window > 0 ? std::min(rows, window) : rows;
    return near * (near + 1) / 2 + (rows - near) * window;
}

/// What a sequence adds to a step: `rows` rows from position `first` on, of which `drawn` go through the head. Rows of
/// one item share the keys that they read: those that the first of them sees, and their own. A layer with a window
/// looks at no more than that, however long the text is.
constexpr Work work_of(const ModelWork& model, uint32_t first, uint32_t rows, uint32_t drawn) noexcept {
    const double begin = first, count = rows, end = begin + count;
    double looked_at = keys_of(end, 0) - keys_of(begin, 0), read = end;
    if (model.window_tokens > 0) {
        const double window = model.window_tokens, share = model.window_share;
        looked_at = looked_at * (1 - share) + (keys_of(end, window) - keys_of(begin, window)) * share;
        read = read * (1 - share) + std::min(end, count + window - 1) * share;
    }
    return {count * model.operations_per_row + looked_at * model.operations_per_key +
                drawn * model.operations_per_logits_row,
            read * model.bytes_per_key};
}

}  // namespace cadans
