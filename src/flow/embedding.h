// One prompt as a vector: the rows of the last layer, put together.
#pragma once

#include <cstdint>
#include <vector>

namespace cadans {

/// Which rows count.
enum class Pooling : uint8_t {
    mean,   ///< all, evenly
    first,  ///< the first token's
    last,   ///< the last token's
};

/// What a sequence that only asks for a vector carries. The executor fills it while the prompt is computed; it is there
/// to be read once the sequence has finished with `length`. Where the prompt is cut into steps changes no bit: rows are
/// added in the order of their positions.
///
/// Thread rule: the executor's until `finished` is told, then the asker's.
struct Embedding {
    /// width  of the model's residual stream
    Embedding(Pooling how, uint32_t width) : pooling(how), vector(width), sum(width) {}

    Pooling pooling;
    std::vector<float> vector;  ///< not normalised
    std::vector<double> sum;    ///< of the rows so far
    uint32_t rows = 0;
};

}  // namespace cadans
