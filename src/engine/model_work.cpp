#include "engine/model_work.h"

#include <algorithm>

namespace cadans::engine {

ModelWork work_of(const model::ModelSpec& spec, const model::MemoryEstimate& memory, const ModelFacts& facts) {
    ModelWork work;
    const double layers = spec.n_layers, width = spec.width;
    const double weights = layers * width * (2.0 * spec.q_width() + 2.0 * spec.kv_width() + 3.0 * spec.ffn_width);
    work.operations_per_row = 2.0 * weights;
    work.operations_per_key = 4.0 * layers * spec.q_width();
    work.operations_per_logits_row = 2.0 * width * spec.vocab;
    work.weight_bytes = static_cast<double>(memory.layer_bytes);
    work.head_bytes = static_cast<double>(memory.head_bytes);
    for (const PageGroupFacts& group : facts.groups)
        work.bytes_per_key += static_cast<double>(group.bytes_per_page) / kPageTokens;
    work.window_tokens = facts.groups.back().window_tokens;
    if (work.window_tokens > 0)
        work.window_share =
            static_cast<double>(std::ranges::count_if(spec.windowed, [](uint8_t w) { return w != 0; })) / layers;
    return work;
}

}  // namespace cadans::engine
