// Goal: what a machine costs is found again. Method: an executor whose time follows a known table, with and without
// noise, and the tables' own text.
#include "engine/calibration.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "engine/cost_table.h"

namespace cadans::engine {
namespace {

/// Takes no time but says it did.
class Pretender final : public Executor {
  public:
    explicit Pretender(const StepCost& cost, uint32_t noise_percent = 0) : cost_(cost), noise_(noise_percent) {}
    void submit(const StepPlan& plan) override {
        result_.begin = 0;
        const auto exact = static_cast<Nanos>(cost_.unscaled_ps(cost_.shape_of(plan)) / 1000);
        result_.end = exact + exact * static_cast<Nanos>(mix64(++steps_) % (noise_ + 1)) / 100;
        if (steps_ % 7 == 0 && noise_ > 0) result_.end *= 5;  // somebody else had the processor
        total_ += result_.end;
        rows_ = std::max(rows_, plan.rows());
    }
    const StepResult* poll() override { return &result_; }
    Nanos total() const { return total_; }
    uint32_t rows() const { return rows_; }

  private:
    StepCost cost_;
    uint32_t noise_;
    uint64_t steps_ = 0;
    Nanos total_ = 0;
    uint32_t rows_ = 0;
    StepResult result_;
};

/// A billion weights on two cores.
StepCost large() {
    StepCost cost;
    cost.weights_ps = 30'000'000'000;
    cost.row_ps = 6'000'000'000;
    cost.step_ps = 400'000'000;
    cost.prompt_key_ps = 1'200'000;
    cost.decode_key_ps = 2'500'000;
    cost.logits_ps = 15'000'000'000;
    return cost;
}

CalibrationSetup setup() {
    CalibrationSetup s;
    s.facts.vocab_size = 1000;
    s.facts.context_tokens = 8192;
    s.facts.groups = {{0, 1024}};
    s.pages = 256;
    s.max_rows = 528;
    s.max_items = 16;
    return s;
}

bool never_stop(uint64_t, uint64_t) { return true; }

void expect_near(uint64_t found, uint64_t truth, double share, const char* what) {
    EXPECT_NEAR(static_cast<double>(found), static_cast<double>(truth), share * static_cast<double>(truth)) << what;
}

TEST(calibration, finds_a_machine_s_table_again) {
    const StepCost truth = large();
    Pretender machine(truth);
    const CostFit fit = calibrate(machine, setup(), never_stop);
    expect_near(fit.cost.weights_ps + fit.cost.step_ps, truth.weights_ps + truth.step_ps, 0.01, "weights and step");
    expect_near(fit.cost.row_ps, truth.row_ps, 0.01, "row");
    expect_near(fit.cost.prompt_key_ps, truth.prompt_key_ps, 0.02, "prompt key");
    expect_near(fit.cost.decode_key_ps, truth.decode_key_ps, 0.02, "decode key");
    expect_near(fit.cost.logits_ps, truth.logits_ps, 0.02, "logits");
    EXPECT_LT(fit.p90_error, 0.01);
    EXPECT_LT(machine.total(), 2 * setup().budget) << "a slow machine is not measured for minutes";
}

TEST(calibration, noise_moves_predictions_little) {
    StepCost truth = large();
    for (const uint64_t part : {1u, 40u}) {  // a large and a small model
        truth.weights_ps /= part, truth.row_ps /= part, truth.logits_ps /= part;
        Pretender machine(truth, 6);
        const CostFit fit = calibrate(machine, setup(), never_stop);
        for (const uint32_t rows : {1u, 8u, 64u, 256u}) {
            for (const uint32_t depth : {0u, 1000u, 3000u}) {
                StepShape shape;
                truth.add(shape, depth, rows, 1);
                const auto exact = static_cast<double>(truth.predict(shape));
                EXPECT_NEAR(static_cast<double>(fit.cost.predict(shape)), exact, 0.15 * exact)
                    << rows << " rows behind " << depth << ", part " << part;
            }
        }
    }
}

TEST(calibration, keeps_to_the_pages_and_rows_there_are) {
    CalibrationSetup small = setup();
    small.pages = 2;
    small.max_rows = 9;
    small.max_items = 3;
    Pretender machine(large());
    const CostFit fit = calibrate(machine, small, never_stop);
    EXPECT_LE(machine.rows(), 9u);
    EXPECT_GT(fit.cost.unscaled_ps({.rows = 1, .logits_rows = 1, .prompt_context = 0, .decode_context = 1}), 0u);
}

TEST(calibration, stopped_at_once_it_still_has_a_table) {
    Pretender machine(large());
    const CostFit fit = calibrate(machine, setup(), [](uint64_t, uint64_t) { return false; });
    EXPECT_GT(fit.cost.predict({.rows = 1, .logits_rows = 1, .prompt_context = 0, .decode_context = 1}), 0);
}

TEST(calibration, no_coefficient_is_negative_whatever_was_measured) {
    for (uint64_t seed = 1; seed <= 20; seed++) {
        std::vector<StepSample> samples;
        for (uint64_t i = 0; i < 12; i++) {
            StepSample sample;
            StepCost{}.add(sample.shape, static_cast<uint32_t>(mix64(seed * 99 + i) % 500),
                           static_cast<uint32_t>(1 + mix64(seed * 77 + i) % 100), 1);
            sample.time = static_cast<Nanos>(1 + mix64(seed * 55 + i) % 1'000'000);
            samples.push_back(sample);
        }
        const CostFit fit = fit_step_cost(samples, {});
        EXPECT_LE(fit.cost.row_ps, StepCost::kMostPerRow);
        EXPECT_GT(fit.cost.unscaled_ps(samples[0].shape), 0u) << "nothing comes for free";
    }
}

TEST(cost_table, reads_what_it_wrote) {
    CostTable table{{"m", "abc", "a \"fast\" one", 2, "avx2", "1", "q8"}, {large(), 0.01, 0.05}};
    table.fit.cost.window_tokens = 512;
    table.fit.cost.window_share = 853;
    table.kv_token_bytes = 23'040;
    table.layers = 30;
    const auto read = cost_table_from_json(to_json(table));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->fit.cost, table.fit.cost);
    EXPECT_TRUE(read->key.covers(table.key));
    EXPECT_EQ(read->fit.p90_error, 0.05);
    EXPECT_EQ(read->kv_token_bytes, 23'040u);
    EXPECT_EQ(read->layers, 30u);
    table.key.threads = 3;
    EXPECT_FALSE(read->key.covers(table.key));
    table.key = read->key;
    table.key.kv = "f16";
    EXPECT_FALSE(read->key.covers(table.key));
}

TEST(cost_table, says_what_is_wrong_with_another_s) {
    const std::string good = to_json({{"m", "f", "c", 2, "avx2", "1", "q8"}, {large(), 0, 0}});
    ASSERT_TRUE(cost_table_from_json(good));
    EXPECT_FALSE(cost_table_from_json(""));
    EXPECT_FALSE(cost_table_from_json("[]"));
    EXPECT_FALSE(cost_table_from_json("{}"));
    for (const char* field : {"\"row_ps\"", "\"kind\"", "\"cost\"", "\"threads\"", "\"version\""}) {
        std::string without = good;
        without.replace(without.find(field), 2, "\"x");
        EXPECT_FALSE(cost_table_from_json(without)) << field;
    }
    for (const char* value : {"-1", "1.5", "\"7\"", "99999999999999999999999"}) {
        std::string wrong = good;
        const size_t at = wrong.find("6000000000,");
        wrong.replace(at, 10, value);
        const auto read = cost_table_from_json(wrong);
        ASSERT_FALSE(read) << value;
        EXPECT_EQ(read.error().where, "row_ps");
    }
    for (size_t cut = 0; cut + 2 < good.size(); cut++) EXPECT_FALSE(cost_table_from_json(good.substr(0, cut)));
}

}  // namespace
}  // namespace cadans::engine
