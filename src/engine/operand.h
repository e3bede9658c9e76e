// The input rows of a product, in the one or two forms that the matrices behind it want.
#pragma once

#include <cstdint>

#include "engine/aligned.h"
#include "kernels/table.h"

namespace cadans::engine {

/// `rows` x `cols` activations: as f32, and quantised where a matrix is. Which forms are kept up is fixed by
/// `want` before the first use. Thread rule: threads may write different rows, or different 32-column groups.
class Operand {
  public:
    Operand(uint32_t rows, uint32_t cols) : cols_(cols), floats_(size_t{rows} * cols), rows_(rows) {}

    /// States that this matrix will be fed from here.
    void want(const kernels::PackedMatrix& matrix) {
        if (!kernels::type_info(matrix.type).quantised)
            plain_ = true;
        else if (groups_.size() == 0)
            groups_ = Aligned<kernels::ActivationGroup>(size_t{rows_} * cols_ / kernels::kGroup);
    }

    float* row(uint32_t r) const noexcept { return floats_.data() + size_t{r} * cols_; }

    /// Row r becomes the norm of x.
    void set_norm(const kernels::KernelTable& k, uint32_t r, const float* x, const float* weight, float eps) const {
        if (quantised()) k.rms_norm_quantize(x, weight, cols_, eps, groups(r));
        if (plain_) k.rms_norm(x, weight, cols_, eps, row(r));
    }

    /// Columns [begin, end) of row r hold their final f32 values. Multiples of 32 where a matrix is quantised.
    void columns_done(const kernels::KernelTable& k, uint32_t r, uint32_t begin, uint32_t end) const {
        if (quantised()) k.quantize_row(row(r) + begin, end - begin, groups(r) + begin / kernels::kGroup);
    }

    /// Rows [first, first + n) as the matrix wants them.
    kernels::InputRows input(const kernels::PackedMatrix& matrix, uint32_t first, uint32_t n) const noexcept {
        if (kernels::type_info(matrix.type).quantised)
            return {reinterpret_cast<const std::byte*>(groups(first)), kernels::activation_bytes(cols_), n};
        return {reinterpret_cast<const std::byte*>(row(first)), cols_ * sizeof(float), n};
    }

  private:
    bool quantised() const noexcept { return groups_.size() != 0; }
    kernels::ActivationGroup* groups(uint32_t r) const noexcept {
        return groups_.data() + size_t{r} * (cols_ / kernels::kGroup);
    }

    uint32_t cols_;
    Aligned<float> floats_;
    Aligned<kernels::ActivationGroup> groups_;
    uint32_t rows_;
    bool plain_ = false;
};

}  // namespace cadans::engine
