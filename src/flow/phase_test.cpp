#include "flow/phase.h"

#include <gtest/gtest.h>

namespace cadans {
namespace {

TEST(phase, follows_from_the_counts_alone) {
    EXPECT_EQ(phase_of(10, 0, 0), Phase::prefill);
    EXPECT_EQ(phase_of(10, 8, 0), Phase::prefill);
    EXPECT_EQ(phase_of(10, 9, 0), Phase::decode);
    EXPECT_EQ(phase_of(10, 9, 3), Phase::verify);
    EXPECT_EQ(phase_of(10, 5, 3), Phase::prefill);
    EXPECT_EQ(phase_of(1, 0, 0), Phase::decode);
}

}  // namespace
}  // namespace cadans
