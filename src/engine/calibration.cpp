#include "engine/calibration.h"

#include <algorithm>

#include "base/check.h"
#include "base/random.h"

namespace cadans::engine {
namespace {

constexpr uint32_t kRepeats = 3;
/// No single shape may take more than this part of the time.
constexpr Nanos kLargestPart = 6;

/// `items` sequences that each compute `rows` rows behind `depth` keys.
struct Shape {
    uint32_t items, rows, depth;
    bool score;  ///< all rows need logits
};

/// Whether a shape asks for all that one of `others` asks for.
bool is_larger(const Shape& shape, const std::vector<Shape>& others) {
    return std::ranges::any_of(others, [&](const Shape& other) {
        return shape.items * shape.rows >= other.items * other.rows && shape.depth >= other.depth;
    });
}

/// The shapes of the design; of those that differ in one thing only the cheap ones come first.
std::vector<Shape> design(const CalibrationSetup& setup) {
    const uint32_t context = std::min(setup.facts.context_tokens, setup.pages * kPageTokens);
    std::vector<Shape> shapes;
    const auto add = [&](Shape shape) {
        const uint32_t pages = (shape.depth + shape.rows + kPageTokens - 1) / kPageTokens;
        if (shape.items * shape.rows > setup.max_rows || shape.items > setup.max_items) return;
        if (shape.depth + shape.rows > context || pages * shape.items > setup.pages) return;
        shapes.push_back(shape);
    };
    for (const uint32_t items : {1u, 2u, 4u, 8u}) add({items, 1, 16, false});
    for (const uint32_t depth : {512u, 2048u, 4096u}) add({1, 1, depth, false});
    add({4, 1, 1024, false});
    for (const uint32_t rows : {2u, 4u, 8u, 16u}) add({1, rows, 0, false});
    for (const uint32_t rows : {2u, 4u, 16u}) add({1, rows, 0, true});
    for (const uint32_t rows : {32u, 64u}) add({1, rows, 0, false});
    for (const uint32_t depth : {512u, 1024u, 2048u, 4096u}) add({1, 32, depth, false});
    for (const uint32_t rows : {128u, 256u, 512u}) add({1, rows, 0, false});
    add({1, 128, 1024, false});
    return shapes;
}

/// Runs shapes and keeps what they took.
class Runner {
  public:
    Runner(Executor& executor, const CalibrationSetup& setup) : executor_(executor), setup_(setup) {
        sampling_.temperature = 0;
        // The bytes of a group tell how many layers it has.
        uint64_t all = 0;
        for (const PageGroupFacts& group : setup.facts.groups) all += group.bytes_per_page;
        const PageGroupFacts& last = setup.facts.groups.back();
        window_.window_tokens = last.window_tokens;
        if (last.window_tokens > 0)
            window_.window_share = static_cast<uint32_t>(last.bytes_per_page * StepCost::kWhole / all);
        for (uint32_t p = 0; p < setup.pages; p++) pages_.push_back(PageId{p});
    }

    const StepCost& window() const noexcept { return window_; }

    StepSample run(const Shape& shape) {
        const uint32_t end = shape.depth + shape.rows;
        while (tokens_.size() < end + 1) {
            tokens_.push_back(TokenId{static_cast<uint32_t>(mix64(tokens_.size()) % setup_.facts.vocab_size)});
        }
        const uint32_t pages = (end + kPageTokens - 1) / kPageTokens;
        plan_.clear();
        for (uint32_t i = 0; i < shape.items; i++) {
            StepItem item;
            item.model = setup_.facts.model;
            item.seq = SeqId{i};
            // One token more than is computed where nothing is to be drawn, so that every row may be scored.
            item.sample = shape.rows == 1;
            item.known = {tokens_.data(), end + (item.sample ? 0 : 1)};
            item.first = shape.depth;
            item.count = shape.rows;
            item.phase = shape.rows > 1 ? Phase::prefill : Phase::decode;
            item.score = shape.score;
            item.sampling = &sampling_;
            item.group_count = static_cast<uint32_t>(setup_.facts.groups.size());
            for (uint32_t g = 0; g < item.group_count; g++) item.pages[g] = {0, {pages_.data() + i * pages, pages}};
            plan_.items.push_back(item);
            plan_.rows_by_phase[static_cast<uint8_t>(item.phase)] += item.count;
        }
        executor_.submit(plan_);
        const StepResult* result = executor_.poll();
        while (result == nullptr) result = executor_.poll();
        return {window_.shape_of(plan_), std::max<Nanos>(1, result->end - result->begin)};
    }

  private:
    Executor& executor_;
    const CalibrationSetup& setup_;
    StepCost window_;
    SamplingParams sampling_;
    StepPlan plan_;
    std::vector<TokenId> tokens_;
    std::vector<PageId> pages_;
};

}  // namespace

CostFit calibrate(Executor& executor, const CalibrationSetup& setup, const OnCalibration& progress) {
    check(!setup.facts.groups.empty() && setup.pages > 0, "a model to calibrate has pages");
    Runner runner(executor, setup);
    const std::vector<Shape> shapes = design(setup);
    check(!shapes.empty(), "at least a single row can be computed");
    runner.run(shapes.front());  // the first step finds everything cold

    std::vector<std::vector<StepSample>> taken(shapes.size());
    std::vector<Shape> too_large;
    Nanos spent = 0;
    bool go_on = true;
    for (uint32_t turn = 0; turn < kRepeats * shapes.size() && go_on; turn++) {
        const size_t i = turn % shapes.size();
        go_on = progress(turn, kRepeats * shapes.size());
        const bool repeated = turn >= shapes.size();
        const Nanos left = setup.budget - spent;
        if (repeated ? taken[i].empty() || taken[i][0].time > left : is_larger(shapes[i], too_large)) continue;
        taken[i].push_back(runner.run(shapes[i]));
        spent += taken[i].back().time;
        if (taken[i].back().time > setup.budget / kLargestPart) too_large.push_back(shapes[i]);
    }
    std::vector<StepSample> medians;
    for (std::vector<StepSample>& samples : taken) {
        if (samples.empty()) continue;
        std::ranges::sort(samples, {}, &StepSample::time);
        medians.push_back(samples[(samples.size() - 1) / 2]);
    }
    progress(1, 1);
    return fit_step_cost(medians, runner.window());
}

}  // namespace cadans::engine
