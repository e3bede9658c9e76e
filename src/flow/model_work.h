// What computing a model asks of a machine, in operations and bytes: the numerators of its shares.
#pragma once

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

/// What a sequence adds to a step: `rows` rows from position `first` on, of which `drawn` go through the head. Rows of
/// one item share the keys that they read.
constexpr Work work_of(const ModelWork& model, uint32_t first, uint32_t rows, uint32_t drawn) noexcept {
    const double last = first + rows;
    const double keys = rows * (first + last + 1) / 2;
    return {rows * model.operations_per_row + keys * model.operations_per_key + drawn * model.operations_per_logits_row,
            last * model.bytes_per_key};
}

}  // namespace cadans
