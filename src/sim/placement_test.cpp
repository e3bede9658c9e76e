#include "sim/placement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "sim/advice.h"
#include "sim/load_spec.h"
#include "sim/testing/scratch.h"
#include "sim/worker_card.h"

namespace cadans::sim {
namespace {

const Box kBox{"box", built_in_fit(), {}};

Terms terms_for(double multiple = 5) {
    Terms terms;
    terms.cost = kBox.fit.cost;
    terms.promise.multiple = 5;
    terms.promise.gap = terms.promise.stall =
        std::llround(multiple * static_cast<double>(isolated_decode(kBox.fit.cost)));
    return terms;
}

TEST(placement, every_way_to_place_two_kinds_on_four_boxes_is_there_once) {
    const std::vector<Box> boxes = {{"A", built_in_fit(), {}, 100}, {"B", built_in_fit(), {}, 300}};
    const auto all = placements_of(2, 4);
    ASSERT_EQ(all.size(), 2u + 4 * 3);
    std::set<std::string> names;
    for (const Placement& one : all) {
        EXPECT_EQ(one.boxes(), 4u);
        EXPECT_TRUE(names.insert(name_of(one, boxes)).second) << name_of(one, boxes);
    }
    EXPECT_TRUE(names.contains("4 A shared"));
    EXPECT_TRUE(names.contains("3 A prefill + 1 B decode"));
    EXPECT_EQ(name_of({.prefill = 1, .decode = 1}, {&kBox, 1}), "1 prefill + 1 decode");
    EXPECT_EQ(placements_of(1, 1).size(), 1u) << "one box cannot be split";
    EXPECT_EQ(price_of({.prefill = 3, .decode = 1, .kind = 0, .decode_kind = 1}, boxes), 600);
    EXPECT_FALSE(price_of({.shared = 1}, {&kBox, 1}));
}

TEST(placement, goodput_lies_between_a_rate_that_keeps_the_promise_and_one_that_does_not) {
    const auto load = *make_load("poisson:requests=150,prompt=200,output=20", 2);
    const Terms terms = terms_for();
    const PlacementSearch search({&kBox, 1}, terms, load);
    for (const Placement& placement : placements_of(1, 2)) {
        const double found = search.goodput(placement);
        ASSERT_GT(found, 0);
        EXPECT_GE(search.serve(placement, found).attained, 0.9);
        EXPECT_LT(search.serve(placement, 2 * found).attained, 0.9);
        const auto tightest = search.tightest(placement, found / 2);
        ASSERT_TRUE(tightest);
        EXPECT_LT(*tightest, 1.03);
        EXPECT_GT(*tightest, 0.1);
        EXPECT_GT(search.tightest(placement, 4 * found), 1.0) << "nobody serves so many so soon";
    }
}

TEST(placement, one_shared_box_has_the_capacity_of_its_machine) {
    const auto load = *make_load("poisson:requests=150,prompt=200,output=20", 2);
    const Terms terms = terms_for();
    const Machine machine = *machine_of("cadence", {}, built_in_fit(), terms.promise.gap);
    const double alone = capacity(machine, load, terms.promise, Rule::distserve, 1);
    const double found = PlacementSearch({&kBox, 1}, terms, load).goodput({.shared = 1});
    EXPECT_NEAR(found / alone, 1, 4 * kGrain);
}

TEST(placement, twice_the_boxes_serve_about_twice_as_much) {
    const auto load = *make_load("poisson:requests=300,prompt=200,output=20", 2);
    const Terms terms = terms_for();
    const PlacementSearch search({&kBox, 1}, terms, load);
    const double ratio = search.goodput({.shared = 4}) / search.goodput({.shared = 2});
    EXPECT_GT(ratio, 1.7);
    EXPECT_LT(ratio, 3.2);
}

TEST(placement, a_slow_link_costs_a_split_its_promise_and_sharing_nothing) {
    const auto load = *make_load("poisson:requests=150,prompt=400,output=20", 2);
    Terms terms = terms_for();
    terms.link = {1.25e9, 0};
    const PlacementSearch fast({&kBox, 1}, terms, load);
    Terms slow_terms = terms;
    slow_terms.link = {1e5, 0};
    const PlacementSearch slow({&kBox, 1}, slow_terms, load);
    EXPECT_GT(fast.goodput({.prefill = 1, .decode = 1}), 0);
    EXPECT_EQ(slow.goodput({.prefill = 1, .decode = 1}), 0);
    EXPECT_EQ(slow.goodput({.shared = 2}), fast.goodput({.shared = 2}));
}

const KvShape kKv{1024, 10};

Result<Box> card(const std::string& text) { return read_card(text, kBox.fit, {}, kKv, "box 1"); }

TEST(worker_card, what_is_typed_in_is_the_table_at_another_speed) {
    const auto box =
        card(R"({"name": "big", "compute": 4, "memory_speed": 2, "memory": "1M", "running": 3, "price": 9})");
    ASSERT_TRUE(box) << box.error().message;
    const StepCost &cost = box->fit.cost, &table = kBox.fit.cost;
    EXPECT_EQ(cost.row_ps, table.row_ps / 4);
    EXPECT_EQ(cost.prompt_key_ps, table.prompt_key_ps / 4);
    EXPECT_EQ(cost.weights_ps, table.weights_ps / 2);
    EXPECT_EQ(cost.decode_key_ps, table.decode_key_ps / 2);
    EXPECT_EQ(cost.logits_ps, table.logits_ps / 2);
    EXPECT_EQ(cost.step_ps, table.step_ps);
    EXPECT_EQ(box->name, "big");
    EXPECT_EQ(box->room.kv_tokens, 1024u);
    EXPECT_EQ(box->room.running, 3u);
    EXPECT_EQ(box->price, 9);
    const auto same = card("{}");
    ASSERT_TRUE(same);
    EXPECT_EQ(same->fit.cost, table);
    EXPECT_EQ(same->name, "box 1");
    EXPECT_FALSE(same->price);
}

TEST(worker_card, a_measured_table_is_a_card) {
    const std::string table =
        R"("weights_ps":1,"row_ps":2,"step_ps":3,"prompt_key_ps":4,"decode_key_ps":5,"logits_ps":6)";
    const Scratch file("{\"kind\": \"cadans-step-cost\", \"cost\": {" + table + "}, \"price\": 5}", "garage.json");
    const auto box = read_card(file.path(), kBox.fit, {}, kKv, "box 1");
    ASSERT_TRUE(box) << box.error().message;
    EXPECT_EQ(box->fit.cost.row_ps, 2u);
    EXPECT_EQ(box->price, 5);
    EXPECT_NE(box->name.find("garage"), std::string::npos);
    EXPECT_FALSE(box->fit.kv);
    const auto shaped = card("{" + table + R"(,"kv_token_bytes": 77, "layers": 3})");
    ASSERT_TRUE(shaped && shaped->fit.kv);
    EXPECT_EQ(shaped->fit.kv->token_bytes, 77u);
    EXPECT_EQ(shaped->fit.kv->layers, 3u);
}

TEST(worker_card, says_what_is_not_understood) {
    for (const auto& [text, word] :
         std::initializer_list<std::pair<const char*, const char*>>{{R"({"speed": 2})", "speed"},
                                                                    {R"({"compute": 0})", "compute"},
                                                                    {R"({"compute": "fast"})", "compute"},
                                                                    {R"({"memory_speed": 1e99})", "memory_speed"},
                                                                    {R"({"memory": "many"})", "memory"},
                                                                    {R"({"memory": -5})", "memory"},
                                                                    {R"({"memory": 1024})", "a page has 32"},
                                                                    {R"({"price": -1})", "price"},
                                                                    {R"({"running": 0})", "running"},
                                                                    {R"({"name": 7})", "name"},
                                                                    {R"({"weights_ps": 1})", "row_ps"},
                                                                    {"{nonsense", "JSON object"},
                                                                    {"/nowhere/at/all.json", "/nowhere/at/all.json"}}) {
        const auto box = card(text);
        ASSERT_FALSE(box) << text;
        EXPECT_NE(box.error().message.find(word), std::string::npos) << box.error().message;
    }
    const Scratch list("[1, 2]");
    EXPECT_FALSE(read_card(list.path(), kBox.fit, {}, kKv, "box 1"));
}

Found found(Placement placement, double goodput, Service at = {}) { return {placement, goodput, at, std::nullopt}; }

TEST(advice, says_which_and_why) {
    const Terms terms = terms_for();
    const Placement shared{.shared = 2}, split{.prefill = 1, .decode = 1};
    const auto said = [&](std::vector<Found> all) { return advice(all, {&kBox, 1}, terms); };

    EXPECT_NE(said({found(shared, 1), found(split, 2)}).find("split, 1 prefill + 1 decode: 2 requests a second keep"),
              std::string::npos);
    EXPECT_NE(said({found(shared, 1), found(split, 2)}).find("2.00 times what sharing serves"), std::string::npos);
    EXPECT_NE(said({found(shared, 1), found(split, 1.04)}).find("do not split; 2 shared"), std::string::npos)
        << "a split that is hardly better is not worth its link";
    EXPECT_NE(said({found(shared, 1), found(split, 0.5, {.link_busy = 0.9})}).find("fill its link 90 %"),
              std::string::npos);
    EXPECT_NE(said({found(shared, 1), found(split, 0.5, {.reading_busy = 0.9, .writing_busy = 0.2})}).find("90 %"),
              std::string::npos);
    EXPECT_NE(said({found(shared, 1), found(split, 0.5, {.reading_busy = 0.8, .writing_busy = 0.8})})
                  .find("1 box instead of 2"),
              std::string::npos);
    const Service waits{.exposed = 9 * kNanosPerSecond, .wait_per_token = terms.promise.gap};
    EXPECT_NE(said({found(shared, 1), found(split, 0, waits)}).find("no split keeps it at any rate: answers wait 9"),
              std::string::npos);
    EXPECT_NE(said({found(shared, 0), found(split, 1)}).find("sharing keeps the promise at no rate"),
              std::string::npos);
    EXPECT_NE(said({found(shared, 0), found(split, 0)}).find("no placement"), std::string::npos);
    EXPECT_NE(said({found(shared, INFINITY), found(split, INFINITY)}).find("too few requests"), std::string::npos);
    EXPECT_NE(said({found({.shared = 1}, 0.01)}).find("0.6 requests a minute"), std::string::npos);
    EXPECT_EQ(choice_of(std::vector{found(shared, 0), found(split, 0)}), nullptr);
}

}  // namespace
}  // namespace cadans::sim
