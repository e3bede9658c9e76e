#include "kv/page_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "base/random.h"
#include "kv/page_lease.h"
#include "kv/page_needs.h"

namespace cadans::kv {
namespace {

constexpr PageGroupFacts kFull{0, 1000};
constexpr PageGroupFacts kWindow{100, 300};

PagePool two_groups(uint64_t budget) {
    return PagePool(budget, {{ModelId{0}, kFull, 1000}, {ModelId{0}, kWindow, 1000}});
}

TEST(page_needs, counts_whole_pages) {
    EXPECT_EQ(pages_for(0), 0u);
    EXPECT_EQ(pages_for(1), 1u);
    EXPECT_EQ(pages_for(32), 1u);
    EXPECT_EQ(pages_for(33), 2u);
}

TEST(page_needs, a_window_drops_exactly_the_pages_no_later_row_can_see) {
    for (uint32_t position = 0; position < 400; position++) {
        const uint32_t first = first_page_in_reach(kWindow, position);
        // The oldest key that this row needs: position - key < window.
        const uint32_t oldest = position < kWindow.window_tokens ? 0 : position - kWindow.window_tokens + 1;
        EXPECT_EQ(first, oldest / kPageTokens) << position;
    }
}

TEST(page_needs, the_most_is_what_a_walk_through_the_sequence_really_needs) {
    for (uint32_t window : {1u, 2u, 31u, 32u, 33u, 100u, 512u}) {
        for (uint32_t chunk : {1u, 2u, 7u, 32u, 100u}) {
            const PageGroupFacts group{window, 1};
            uint32_t most = 0;
            for (uint32_t offset = 0; offset < kPageTokens; offset++) {
                for (uint32_t first = offset; first < 1500; first += chunk) {
                    most = std::max(most, pages_for(first + chunk) - first_page_in_reach(group, first));
                }
            }
            EXPECT_EQ(most_pages(group, 100000, chunk), most) << window << " " << chunk;
        }
    }
}

TEST(page_needs, the_largest_fit_fits_and_one_more_token_does_not) {
    ModelFacts model{ModelId{0}, 100, 100000, {kFull, kWindow}};
    for (uint64_t budget : {0u, 1299u, 1300u, 5000u, 77777u}) {
        const uint32_t fit = largest_fit(model, 64, budget);
        EXPECT_LE(most_bytes(model, fit, 64), budget);
        EXPECT_GT(most_bytes(model, fit + 1, 64), budget);
    }
    EXPECT_EQ(largest_fit(model, 64, uint64_t{1} << 40), model.context_tokens);
}

TEST(page_pool, groups_compete_for_one_budget) {
    PagePool pool = two_groups(10'000);
    EXPECT_EQ(pool.free_pages(0), 10u);
    EXPECT_EQ(pool.free_pages(1), 33u);
    PageLease lease(pool, ModelId{0}, 2, 1000);
    ASSERT_TRUE(lease.grow(5 * kPageTokens));
    EXPECT_EQ(pool.leased_bytes(), 5u * 1300);
    EXPECT_EQ(pool.free_pages(0), 3u);
    EXPECT_EQ(pool.free_pages(1), 11u);
    pool.check_invariants();
}

TEST(page_pool, a_limit_of_the_group_holds_too) {
    PagePool pool(1'000'000, {{ModelId{3}, kFull, 2}});
    PageLease lease(pool, ModelId{3}, 1, 1000);
    EXPECT_TRUE(lease.grow(64));
    EXPECT_FALSE(lease.grow(65));
}

TEST(page_pool, the_lowest_free_page_is_taken_first) {
    PagePool pool(1'000'000, {{ModelId{0}, kFull, 500}});
    PageLease first(pool, ModelId{0}, 1, 1000), second(pool, ModelId{0}, 1, 1000);
    ASSERT_TRUE(first.grow(96));
    ASSERT_TRUE(second.grow(32));
    EXPECT_EQ(index(second.run(0).ids[0]), 3u);
    first.clear();
    ASSERT_TRUE(second.grow(64));
    EXPECT_EQ(index(second.run(0).ids[1]), 0u);
}

TEST(page_lease, grows_in_all_groups_or_in_none) {
    PagePool pool = two_groups(2'700);
    PageLease lease(pool, ModelId{0}, 2, 1000);
    EXPECT_TRUE(lease.grow(64));
    EXPECT_FALSE(lease.grow(65)) << "100 bytes are left, a page of each group needs 1,300";
    EXPECT_EQ(lease.pages(0), 2u);
    EXPECT_EQ(lease.pages(1), 2u);
    pool.check_invariants();
}

TEST(page_lease, gives_back_what_lies_behind_its_last_token) {
    PagePool pool = two_groups(10'000);
    PageLease lease(pool, ModelId{0}, 2, 1000);
    ASSERT_TRUE(lease.grow(3 * kPageTokens));
    const PageId first = lease.run(0).ids[0];
    lease.shrink(kPageTokens + 1);
    EXPECT_EQ(lease.pages(0), 2u);
    EXPECT_EQ(lease.pages(1), 2u);
    EXPECT_EQ(lease.tokens_held(), kPageTokens + 1);
    EXPECT_EQ(lease.run(0).ids[0], first);
    lease.shrink(2 * kPageTokens);
    EXPECT_EQ(lease.tokens_held(), kPageTokens + 1) << "it never grows";
    pool.check_invariants();
    EXPECT_TRUE(lease.grow(3 * kPageTokens));
}

TEST(page_lease, gives_everything_back_when_it_ends) {
    PagePool pool = two_groups(100'000);
    {
        PageLease lease(pool, ModelId{0}, 2, 1000);
        ASSERT_TRUE(lease.grow(1000));
        lease.slide(500);
    }
    EXPECT_EQ(pool.leased_bytes(), 0u);
    pool.check_invariants();
}

TEST(page_lease, a_window_slides_and_a_full_group_stays) {
    PagePool pool = two_groups(100'000);
    PageLease lease(pool, ModelId{0}, 2, 1000);
    ASSERT_TRUE(lease.grow(320));
    lease.slide(300);  // row 300 sees keys from 201 on: pages 0 to 5 are out of reach
    EXPECT_EQ(lease.run(0).first_page, 0u);
    EXPECT_EQ(lease.run(0).ids.size(), 10u);
    EXPECT_EQ(lease.run(1).first_page, 6u);
    EXPECT_EQ(lease.run(1).ids.size(), 4u);
}

TEST(page_lease, a_run_stays_where_it_is_while_it_grows) {
    PagePool pool = two_groups(1'000'000);
    PageLease lease(pool, ModelId{0}, 2, 2000);
    ASSERT_TRUE(lease.grow(1));
    const PageId* where = lease.run(0).ids.data();
    ASSERT_TRUE(lease.grow(2000));
    EXPECT_EQ(lease.run(0).ids.data(), where);
}

// Random growing, sliding and ending of many leases: no page is ever held twice, none is lost.
TEST(page_pool, no_page_is_ever_held_twice_or_lost) {
    for (uint64_t seed = 0; seed < 50; seed++) {
        uint64_t draws = 0;
        const auto draw = [&](uint64_t below) { return mix64(seed * 1'000'003 + draws++) % below; };
        PagePool pool(20'000 + draw(60'000), {{ModelId{0}, kFull, 40 + static_cast<uint32_t>(draw(40))},
                                              {ModelId{0}, kWindow, 1000},
                                              {ModelId{1}, {0, 700}, 1000}});
        struct Held {
            std::unique_ptr<PageLease> lease;
            uint32_t position = 0;
        };
        std::vector<Held> held(12);
        for (int operation = 0; operation < 400; operation++) {
            Held& one = held[draw(held.size())];
            if (!one.lease) {
                const bool second = draw(3) == 0;
                one = {std::make_unique<PageLease>(pool, ModelId{second ? uint16_t{1} : uint16_t{0}}, second ? 1 : 2,
                                                   2048),
                       0};
            }
            const auto what = draw(10);
            if (what == 0) {
                one.lease.reset();
            } else if (what == 1) {
                one.lease->clear();
                one.position = 0;
            } else {
                const uint32_t to = std::min<uint32_t>(2048, one.position + static_cast<uint32_t>(draw(100)));
                const uint64_t before = pool.leased_bytes();
                if (one.lease->grow(to)) {
                    one.position = to;
                    one.lease->slide(to);
                } else {
                    EXPECT_EQ(pool.leased_bytes(), before);
                }
            }
            pool.check_invariants();
            std::set<std::pair<uint32_t, uint32_t>> seen;
            uint64_t bytes = 0;
            for (const Held& h : held) {
                if (!h.lease) continue;
                bytes += h.lease->bytes();
                for (uint32_t g = 0; g < h.lease->groups(); g++) {
                    for (PageId page : h.lease->run(g).ids) {
                        EXPECT_TRUE(seen.insert({h.lease->groups() == 1 ? 2 : g, index(page)}).second)
                            << "seed " << seed;
                    }
                }
            }
            EXPECT_EQ(bytes, pool.leased_bytes()) << "seed " << seed;
        }
    }
}

TEST(page_pool_death, a_page_group_without_bytes_is_our_bug) {
    EXPECT_EXIT(PagePool(100, {{ModelId{0}, {0, 0}, 1}}), testing::ExitedWithCode(70), "a page has bytes");
}

}  // namespace
}  // namespace cadans::kv
