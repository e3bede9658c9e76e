#include "engine/batch.h"

namespace cadans::engine {

void Batch::reserve(uint32_t rows, uint32_t item_count) {
    token.reserve(rows);
    position.reserve(rows);
    item_of.reserve(rows);
    first_row.reserve(item_count + 1);
}

void Batch::assemble(std::span<const StepItem> plan_items) {
    items = plan_items;
    token.clear();
    position.clear();
    item_of.clear();
    first_row.clear();
    for (uint32_t i = 0; i < items.size(); i++) {
        first_row.push_back(rows());
        for (uint32_t t = 0; t < items[i].count; t++) {
            token.push_back(index(items[i].known[items[i].first + t]));
            position.push_back(items[i].first + t);
            item_of.push_back(i);
        }
    }
    first_row.push_back(rows());
}

}  // namespace cadans::engine
