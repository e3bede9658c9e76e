#include "kv/prefix_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "base/random.h"
#include "kv/page_lease.h"
#include "kv/page_needs.h"

namespace cadans::kv {
namespace {

constexpr uint32_t kLongest = 40 * kPageTokens;

std::vector<TokenId> tokens_of(uint64_t seed, uint32_t count) {
    std::vector<TokenId> tokens;
    for (uint32_t i = 0; i < count; i++)
        tokens.push_back(TokenId{static_cast<uint32_t>(mix64(seed * 4096 + i) % 1000)});
    return tokens;
}

std::vector<TokenId> joined(std::vector<TokenId> head, uint32_t kept, const std::vector<TokenId>& tail) {
    head.resize(kept);
    head.insert(head.end(), tail.begin(), tail.end());
    return head;
}

/// A pool and a tree of one model: one group that needs everything, and perhaps one with a window.
struct House {
    explicit House(uint32_t pages, uint32_t window = 0)
        : groups(window == 0 ? 1 : 2),
          pool(pages * uint64_t{10} * groups, limits(window)),
          tree(pool, 2 * pages + 16) {}

    static std::vector<PagePool::GroupLimit> limits(uint32_t window) {
        std::vector<PagePool::GroupLimit> all = {{ModelId{0}, {0, 10}, 100000}};
        if (window != 0) all.push_back({ModelId{0}, {window, 10}, 100000});
        return all;
    }

    std::unique_ptr<PageLease> lease(uint64_t scope = 0, bool caches = true) {
        return std::make_unique<PageLease>(pool, &tree, PageLease::Owner{ModelId{0}, scope, caches}, groups, kLongest);
    }

    /// Computes all of `tokens` in one piece after what is cached, and leaves. What was found.
    PageLease::Reuse run(const std::vector<TokenId>& tokens, uint64_t scope = 0, bool caches = true) {
        const auto one = lease(scope, caches);
        const auto count = static_cast<uint32_t>(tokens.size());
        const PageLease::Reuse reuse = one->adopt(tokens, count - 1, true);
        EXPECT_TRUE(one->grow(count));
        one->copied();
        one->retire(tokens, count);
        check();
        return reuse;
    }

    void check() const {
        pool.check_invariants();
        tree.check_invariants();
    }

    uint32_t groups;
    PagePool pool;
    PrefixTree tree;
};

TEST(prefix_tree, a_prompt_told_again_is_found_but_for_its_last_token) {
    House house(100);
    const auto prompt = tokens_of(1, 100);
    EXPECT_EQ(house.run(prompt).end, ReuseEnd::first_use);
    const PageLease::Reuse again = house.run(prompt);
    EXPECT_EQ(again.tokens, 99u);
    EXPECT_EQ(again.end, ReuseEnd::whole);
}

TEST(prefix_tree, a_chat_that_goes_on_finds_all_that_was_computed) {
    House house(100);
    auto chat = tokens_of(1, 50);
    house.run(chat);
    for (uint64_t turn = 2; turn < 12; turn++) {
        const auto before = static_cast<uint32_t>(chat.size());
        chat = joined(chat, before, tokens_of(turn, 45));
        const PageLease::Reuse reuse = house.run(chat);
        EXPECT_EQ(reuse.tokens, before);
        EXPECT_EQ(reuse.end, ReuseEnd::extends);
    }
    // One chain with one leaf that is not full: what an earlier turn left of a page is absorbed.
    EXPECT_EQ(house.tree.nodes(), 1 + pages_for(static_cast<uint32_t>(chat.size())));
}

TEST(prefix_tree, reuse_ends_at_the_first_token_that_differs) {
    House house(100);
    const auto prompt = tokens_of(1, 100);
    house.run(prompt);
    for (const uint32_t same : {0u, 1u, 31u, 32u, 33u, 64u, 95u, 97u}) {
        auto other = prompt;
        other[same] = TokenId{5000};
        const PageLease::Reuse reuse = house.run(other);
        EXPECT_EQ(reuse.tokens, same);
        EXPECT_EQ(reuse.end, ReuseEnd::differs);
        EXPECT_EQ(reuse.position, same);
    }
}

TEST(prefix_tree, another_scope_finds_nothing_and_is_told_nothing) {
    House house(100);
    const auto prompt = tokens_of(1, 100);
    house.run(prompt, 7);
    const PageLease::Reuse other = house.run(prompt, 8);
    EXPECT_EQ(other.tokens, 0u);
    EXPECT_EQ(other.end, ReuseEnd::first_use) << "as if nobody had ever asked";
    EXPECT_EQ(house.run(prompt, 7).tokens, 99u);
}

TEST(prefix_tree, who_opts_out_neither_takes_nor_leaves) {
    House house(100);
    const auto prompt = tokens_of(1, 100);
    house.run(prompt, 0, false);
    EXPECT_EQ(house.pool.cached_bytes(), 0u);
    EXPECT_EQ(house.run(prompt).tokens, 0u);
    const PageLease::Reuse out = house.run(prompt, 0, false);
    EXPECT_EQ(out.tokens, 0u);
    EXPECT_EQ(out.end, ReuseEnd::off);
}

TEST(prefix_tree, pages_are_shared_while_both_run) {
    House house(100);
    const auto prompt = tokens_of(1, 96);
    const auto one = house.lease(), two = house.lease();
    one->adopt(prompt, 95, true);
    ASSERT_TRUE(one->grow(96));
    one->publish(prompt, 96);
    EXPECT_TRUE(one->finds_more(prompt, 95) == false && two->finds_more(prompt, 95) == false);
    EXPECT_EQ(two->adopt(prompt, 95, false).tokens, 64u);
    EXPECT_EQ(house.pool.leased_pages(0), 3u);
    EXPECT_EQ(two->run(0).ids[1], one->run(0).ids[1]);
    one->clear();
    EXPECT_EQ(house.pool.leased_pages(0), 2u) << "the second still needs two";
    EXPECT_EQ(house.pool.cached_pages(0), 1u);
    house.check();
}

TEST(prefix_tree, who_computed_the_same_at_the_same_time_keeps_one_copy) {
    House house(100);
    const auto prompt = tokens_of(1, 64);
    const auto one = house.lease(), two = house.lease();
    for (PageLease* lease : {one.get(), two.get()}) ASSERT_TRUE(lease->grow(64));
    EXPECT_EQ(house.pool.leased_pages(0), 4u);
    one->publish(prompt, 64);
    two->publish(prompt, 64);
    EXPECT_EQ(house.pool.leased_pages(0), 2u);
    house.check();
}

TEST(prefix_tree, what_is_longest_unused_goes_first_and_is_remembered_as_evicted) {
    House house(9);
    house.run(tokens_of(1, 96));
    house.run(tokens_of(2, 96));
    house.run(tokens_of(3, 96));
    house.run(tokens_of(1, 96));  // used again
    house.run(tokens_of(4, 96));
    EXPECT_EQ(house.run(tokens_of(2, 96)).end, ReuseEnd::evicted);
}

TEST(prefix_tree, what_a_lease_holds_is_never_evicted) {
    House house(6);
    const auto prompt = tokens_of(1, 96);
    const auto holder = house.lease();
    ASSERT_TRUE(holder->grow(96));
    holder->publish(prompt, 96);
    for (uint64_t other = 2; other < 20; other++) house.run(tokens_of(other, 90));
    EXPECT_FALSE(house.lease()->grow(4 * kPageTokens)) << "three pages are held";
    EXPECT_EQ(house.lease()->adopt(prompt, 95, false).tokens, 64u);
    house.check();
}

TEST(prefix_tree, a_prefix_is_usable_only_where_every_group_has_what_it_needs) {
    House house(100, 40);
    const auto prompt = tokens_of(1, 320);
    const auto one = house.lease();
    for (uint32_t at = 0; at < 320; at += 32) {  // window pages slide out and stay cached
        ASSERT_TRUE(one->grow(at + 32));
        one->publish(prompt, at + 32);
        one->slide(at + 32);
    }
    one->clear();
    EXPECT_EQ(house.pool.cached_pages(0), 10u);
    EXPECT_EQ(house.pool.cached_pages(1), 10u);
    for (int i = 0; i < 6; i++) ASSERT_TRUE(house.tree.evict());
    house.check();
    EXPECT_EQ(house.pool.cached_pages(0), 10u) << "window pages inside a prompt go first";
    // The oldest six window pages are gone: a prompt that parts at page 4 finds no window there.
    auto early = prompt;
    early[130] = TokenId{5000};
    const PageLease::Reuse reuse = house.run(early);
    EXPECT_EQ(reuse.tokens, 0u);
    EXPECT_EQ(reuse.end, ReuseEnd::evicted);
    EXPECT_EQ(house.run(prompt).tokens, 319u) << "at its end all is there";
}

TEST(prefix_tree, pages_alike_in_hash_only_are_never_mixed_up) {
    // Full tokens are compared: a child is found only under its own parent and with its own tokens.
    House house(100);
    const auto prompt = tokens_of(1, 96);
    house.run(prompt);
    auto swapped = prompt;
    std::swap_ranges(swapped.begin(), swapped.begin() + 32, swapped.begin() + 32);
    EXPECT_EQ(house.run(swapped).tokens, 0u);
}

// Goal: under any operations a lease finds what was computed for its scope and nothing else, and books stay exact.
// Method: cells that remember which tokens were written where, and a list of all histories as the model.
class Walk {
  public:
    Walk(uint64_t seed, bool roomy)
        : seed_(seed),
          roomy_(roomy),
          house_(roomy ? 4000 : static_cast<uint32_t>(8 + draw(60)),
                 draw(2) == 0 ? 0 : static_cast<uint32_t>(1 + draw(150))) {
        for (uint32_t g = 0; g < house_.groups; g++) cells_.emplace_back(house_.pool.pages_in(g) * kPageTokens);
    }

    void run() {
        for (uint32_t turn = 0; turn < 300; turn++) {
            if (running_.size() < 4 && draw(3) == 0) start();
            if (!running_.empty()) step(*running_[draw(running_.size())]);
            if (!running_.empty() && draw(12) == 0) end(draw(running_.size()));
            house_.check();
        }
        while (!running_.empty()) end(0);
        house_.check();
        ASSERT_EQ(house_.pool.leased_bytes(), 0u);
        while (house_.tree.evict()) house_.check();
        ASSERT_EQ(house_.pool.free_bytes(), house_.pool.budget_bytes());
        ASSERT_EQ(house_.tree.nodes(), 0u);
    }

    uint64_t found() const { return found_; }

  private:
    struct Run {
        std::unique_ptr<PageLease> lease;
        uint64_t scope;
        std::vector<TokenId> tokens;
        uint32_t computed = 0;
    };

    uint64_t draw(uint64_t below) { return mix64(seed_ * 0x9E3779B97F4A7C15u + ++draws_) % below; }
    uint32_t draw32(uint64_t below) { return static_cast<uint32_t>(draw(below)); }

    uint64_t& cell(const PageLease& lease, uint32_t group, uint32_t position) {
        const PageRun run = lease.run(group);
        return cells_[group][index(run.ids[position / kPageTokens - run.first_page]) * size_t{kPageTokens} +
                             position % kPageTokens];
    }

    static uint64_t history(const Run& run, uint32_t end) {
        uint64_t hash = run.scope;
        for (uint32_t p = 0; p <= end; p++) hash = mix64(hash ^ (uint64_t{index(run.tokens[p])} + 1));
        return hash;
    }

    void start() {
        auto run = std::make_unique<Run>();
        run->scope = draw(2);
        if (!histories_.empty() && draw(4) != 0) {
            const auto& earlier = histories_[draw(histories_.size())].second;
            run->tokens = joined(earlier, draw32(earlier.size() + 1), tokens_of(draw(3), draw32(60)));
        }
        if (run->tokens.empty()) run->tokens = tokens_of(draw(20), 1 + draw32(200));
        run->tokens.resize(std::min<size_t>(run->tokens.size(), 400));
        run->lease = house_.lease(run->scope);
        const auto most = static_cast<uint32_t>(run->tokens.size()) - 1;
        const PageLease::Reuse reuse = run->lease->adopt(run->tokens, most, true);
        run->computed = reuse.tokens;
        found_ += reuse.tokens;
        if (run->lease->copy_from() != kNoNode && draw(10) != 0) copy(*run->lease);
        if (roomy_ && house_.groups == 1) {
            // Nothing is ever evicted: exactly the longest beginning computed for this scope is found.
            uint32_t longest = 0;
            for (const auto& [scope, tokens] : histories_) {
                if (scope != run->scope) continue;
                uint32_t same = 0;
                while (same < most && same < tokens.size() && tokens[same] == run->tokens[same]) same++;
                longest = std::max(longest, same);
            }
            for (const auto& other : running_) {
                if (other->scope != run->scope) continue;
                uint32_t same = 0;
                const uint32_t whole = other->computed / kPageTokens * kPageTokens;
                while (same < most && same < whole && other->tokens[same] == run->tokens[same]) same++;
                longest = std::max(longest, same);
            }
            ASSERT_EQ(reuse.tokens, longest);
        }
        running_.push_back(std::move(run));
    }

    void copy(PageLease& lease) {
        for (uint32_t g = 0; g < house_.groups; g++) {
            const PageCopy copy = lease.copy(g);
            std::copy_n(cells_[g].begin() + index(copy.from) * kPageTokens, kPageTokens,
                        cells_[g].begin() + index(copy.to) * kPageTokens);
        }
        lease.copied();
    }

    void step(Run& run) {
        const auto size = static_cast<uint32_t>(run.tokens.size());
        const uint32_t count = std::min(size - run.computed, 1 + draw32(70));
        if (count == 0 || !run.lease->grow(run.computed + count)) return;
        if (run.lease->copy_from() != kNoNode) copy(*run.lease);
        const uint32_t end = run.computed + count;
        for (uint32_t g = 0; g < house_.groups; g++) {
            for (uint32_t p = run.computed; p < end; p++) cell(*run.lease, g, p) = history(run, p);
            const uint32_t window = house_.pool.facts(g).window_tokens;
            for (uint32_t p = window == 0 || run.computed < window ? 0 : run.computed - window + 1; p < end; p++) {
                ASSERT_EQ(cell(*run.lease, g, p), history(run, p)) << "group " << g << ", position " << p;
            }
        }
        run.computed = end;
        run.lease->publish(run.tokens, end);
        run.lease->slide(end);
        if (end == size && draw(2) == 0) run.tokens.push_back(TokenId{draw32(10)});
    }

    void end(size_t which) {
        Run& run = *running_[which];
        const uint32_t there = run.lease->copy_from() == kNoNode ? run.computed : run.lease->shared_tokens();
        run.lease->retire(run.tokens, run.computed);
        run.computed = there;  // a copy that was never made left nothing
        run.tokens.resize(run.computed);
        if (run.computed > 0) histories_.emplace_back(run.scope, run.tokens);
        running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(which));
    }

    uint64_t seed_;
    uint64_t draws_ = 0;
    bool roomy_;
    House house_;
    std::vector<std::vector<uint64_t>> cells_;
    std::vector<std::unique_ptr<Run>> running_;
    std::vector<std::pair<uint64_t, std::vector<TokenId>>> histories_;
    uint64_t found_ = 0;
};

TEST(prefix_tree, a_forgotten_model_leaves_nothing_and_begins_anew) {
    for (const uint32_t window : {0u, 64u}) {
        House house(200, window);
        for (uint64_t seed = 0; seed < 6; seed++) house.run(tokens_of(seed, 150), seed % 3);
        auto parted = tokens_of(1, 150);
        parted[70] = TokenId{5000};
        house.run(parted, 1);
        ASSERT_GT(house.pool.cached_bytes(), 0u);
        house.tree.forget(ModelId{1});
        ASSERT_GT(house.pool.cached_bytes(), 0u) << "that was another model";
        house.tree.forget(ModelId{0});
        house.check();
        EXPECT_EQ(house.pool.cached_bytes(), 0u);
        EXPECT_EQ(house.tree.nodes(), 0u);
        EXPECT_EQ(house.run(tokens_of(1, 150), 1).tokens, 0u);
    }
}

TEST(prefix_tree, any_walk_finds_what_was_computed_and_nothing_else) {
    uint64_t found = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        SCOPED_TRACE(seed);
        Walk walk(seed, seed % 2 == 0);
        walk.run();
        if (HasFatalFailure()) return;
        found += walk.found();
    }
    EXPECT_GT(found, 60u * 100u) << "or the walks show little";
}

}  // namespace
}  // namespace cadans::kv
