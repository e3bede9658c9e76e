#include "kernels/table.h"

#include <gtest/gtest.h>

#include <set>

#include "kernels/reference/test_data.h"

namespace cadans::kernels {

TEST(table, forced_instruction_sets_are_the_ones_that_run) {
    std::set<const void*> products;
    for (const KernelTable* table : test::tables()) {
        const Result<Isa> isa = choose_isa(std::string(table->name));
        ASSERT_TRUE(isa);
        EXPECT_EQ(*isa, table->isa);
        EXPECT_EQ(&kernel_table(*isa), table);
        products.insert(reinterpret_cast<const void*>(table->matmul));
    }
    EXPECT_EQ(products.size(), test::tables().size()) << "two tables share one kernel";
}

TEST(table, unknown_names_are_refused_with_what_there_is) {
    const Result<Isa> isa = choose_isa("sse9");
    ASSERT_FALSE(isa);
    EXPECT_EQ(isa.error().code, ErrorCode::unsupported);
    EXPECT_NE(isa.error().message.find("scalar"), std::string::npos);
}

TEST(table, the_default_can_run_here) {
    const Result<Isa> isa = choose_isa();
    ASSERT_TRUE(isa);
    EXPECT_TRUE(isa_available(*isa));
}

}  // namespace cadans::kernels
