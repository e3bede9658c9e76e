// Goal: the work of a step is that of its rows, each looking as far back as its layers let it. Method: a slow count,
// row by row and key by key.
#include "flow/model_work.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace cadans {
namespace {

/// Four layers of which `windowed` see `window` keys; a key of one layer costs 8 operations and 2 bytes.
ModelWork four_layers(uint32_t windowed, uint32_t window) {
    ModelWork work;
    work.operations_per_row = 1'000;
    work.operations_per_key = 4 * 8;
    work.operations_per_logits_row = 50'000;
    work.bytes_per_key = 4 * 2;
    work.window_tokens = window;
    work.window_share = windowed / 4.0;
    return work;
}

/// The same, counted: which keys does each row of each layer look at.
Work counted(uint32_t windowed, uint32_t window, uint32_t first, uint32_t rows, uint32_t drawn) {
    Work work{.operations = rows * 1'000.0 + drawn * 50'000.0};
    for (uint32_t layer = 0; layer < 4; layer++) {
        std::set<uint32_t> read;
        for (uint32_t row = first; row < first + rows; row++)
            for (uint32_t key = 0; key <= row; key++)
                if (layer >= windowed || row - key < window) {
                    work.operations += 8;
                    read.insert(key);
                }
        work.bytes += 2.0 * static_cast<double>(read.size());
    }
    return work;
}

TEST(model_work, rows_look_at_every_key_before_them) {
    const Work work = work_of(four_layers(0, 0), 10, 2, 1);
    EXPECT_DOUBLE_EQ(work.operations, 2 * 1'000 + (11 + 12) * 32 + 50'000);
    EXPECT_DOUBLE_EQ(work.bytes, 12 * 8) << "the keys that both see are read once";
}

TEST(model_work, a_windowed_layer_looks_no_further_back_than_its_window) {
    for (uint64_t seed = 0; seed < 200; seed++) {
        const auto first = static_cast<uint32_t>(mix64(seed) % 150);
        const auto rows = static_cast<uint32_t>(1 + mix64(seed + 1'000) % 60);
        const auto window = static_cast<uint32_t>(1 + mix64(seed + 2'000) % 100);
        const auto windowed = static_cast<uint32_t>(mix64(seed + 3'000) % 5);
        const Work work = work_of(four_layers(windowed, window), first, rows, 1);
        const Work slow = counted(windowed, window, first, rows, 1);
        EXPECT_NEAR(work.operations, slow.operations, 1e-6) << first << " + " << rows << ", window " << window;
        EXPECT_NEAR(work.bytes, slow.bytes, 1e-6) << first << " + " << rows << ", window " << window;
    }
}

TEST(model_work, far_into_a_text_windows_cost_the_same_everywhere) {
    const ModelWork all_windowed = four_layers(4, 512);
    EXPECT_DOUBLE_EQ(work_of(all_windowed, 1'000, 1, 1).bytes, work_of(all_windowed, 100'000, 1, 1).bytes);
    EXPECT_DOUBLE_EQ(work_of(all_windowed, 1'000, 1, 1).operations, work_of(all_windowed, 100'000, 1, 1).operations);
}

}  // namespace
}  // namespace cadans
