#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "sim/capacity.h"
#include "sim/draws.h"
#include "sim/load_spec.h"
#include "sim/machine.h"
#include "sim/plot.h"
#include "sim/report.h"
#include "sim/testing/scratch.h"
#include "sim/trace_reader.h"

namespace cadans::sim {
namespace {

std::string excerpt(const std::string& name) { return std::string(CADANS_SIM_EXCERPTS) + "/" + name; }

TEST(event_heap, gives_the_earliest_and_of_equals_the_first) {
    EventHeap heap;
    heap.push(5, What::arrival, 1);
    heap.push(3, What::arrival, 2);
    heap.push(3, What::arrival, 3);
    heap.push(4, What::arrival, 4);
    std::vector<uint64_t> order;
    while (!heap.empty()) order.push_back(heap.pop().who);
    EXPECT_EQ(order, (std::vector<uint64_t>{2, 3, 4, 1}));
}

TEST(trace_reader, reads_azure_times_to_the_last_digit) {
    const auto trace = read_trace(excerpt("azure_conv_excerpt.csv"), 1);
    ASSERT_TRUE(trace) << trace.error().message;
    ASSERT_EQ(trace->arrivals.size(), 40u);
    EXPECT_EQ(trace->arrivals[0].at, 0);
    EXPECT_EQ(trace->arrivals[1].at, 4'314'579'000);  // 50.9951690 - 46.6805900 s
    EXPECT_EQ(trace->arrivals[0].prompt, 374u);
    EXPECT_EQ(trace->arrivals[0].output, 44u);
    EXPECT_EQ(trace->name, "azure_conv_excerpt.csv");
}

TEST(trace_reader, prompts_of_mooncake_share_what_their_hashes_share) {
    const auto trace = read_trace(excerpt("mooncake_excerpt.jsonl"), 1);
    ASSERT_TRUE(trace) << trace.error().message;
    const auto first = trace->prompt_of(0), second = trace->prompt_of(1);
    ASSERT_EQ(first.size(), 6758u);
    for (size_t p = 0; p < 512; p++) ASSERT_EQ(first[p], second[p]);
    EXPECT_NE(first[512], second[512]);
    EXPECT_EQ(first, trace->prompt_of(0));
}

TEST(trace_reader, lengths_without_times_get_them_from_a_rate) {
    const Scratch file(
        "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n74,918,992,0.08\n0,0,0,0\n3,4,7,1\n");
    auto trace = read_trace(file.path(), 1);
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_FALSE(trace->timed);
    EXPECT_EQ(trace->arrivals[1].prompt, 1u);  // nothing counts as one
    trace->scale_to(2, 1);
    EXPECT_GT(trace->rate(), 0);
}

TEST(trace_reader, draws_servegen_windows) {
    const std::string windows = R"({"0": {"input_tokens": "{45: 0.5, 50: 0.5}", "output_tokens": "{7: 1.0}"}})";
    const Scratch lengths(windows, "chunk-0-dataset.json");
    const Scratch file("0,1.0,2.0,Gamma,0.25,4\n600,0,0,,0,0\n", "chunk-0-trace.csv");
    const auto trace = read_trace(file.path(), 1);
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_NEAR(static_cast<double>(trace->arrivals.size()), 600, 200);
    for (const Arrival& one : trace->arrivals) {
        EXPECT_TRUE(one.prompt == 45 || one.prompt == 50);
        EXPECT_EQ(one.output, 7u);
        EXPECT_LT(one.at, 600 * kNanosPerSecond);
    }
}

TEST(trace_reader, names_the_line_that_is_wrong) {
    for (const char* text :
         {"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,12,x\n",
          "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-16 18:15:46.68,12,1\n",
          "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,12\n",
          "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11,12,4\n",
          "num_prefill_tokens,num_decode_tokens\n1,99999999999\n", "num_prefill_tokens,num_decode_tokens\n-1,2\n"}) {
        const Scratch file(text);
        const auto trace = read_trace(file.path(), 1);
        ASSERT_FALSE(trace) << text;
        EXPECT_NE(trace.error().message.find(":2:"), std::string::npos) << trace.error().message;
    }
    for (const char* text : {"", "\n\n", "hello\n", "{\"timestamp\": 0}\n", "{\"timestamp\":", "TIMESTAMP,a,b\n"}) {
        const Scratch file(text);
        EXPECT_FALSE(read_trace(file.path(), 1)) << text;
    }
    EXPECT_FALSE(read_trace("/nowhere/at/all", 1));
}

TEST(load_spec, arrivals_have_the_rate_and_the_burstiness_that_were_asked_for) {
    for (const char* spec : {"poisson:rate=4,requests=20000", "gamma:rate=4,cv=3,requests=20000"}) {
        const auto load = make_load(spec, 7);
        ASSERT_TRUE(load) << load.error().message;
        EXPECT_NEAR(load->rate(), 4, 0.4) << spec;
        double sum = 0, squares = 0;
        for (size_t i = 1; i < load->arrivals.size(); i++) {
            const double gap = static_cast<double>(load->arrivals[i].at - load->arrivals[i - 1].at) / 1e9;
            sum += gap;
            squares += gap * gap;
        }
        const double n = static_cast<double>(load->arrivals.size() - 1), mean = sum / n;
        const double cv = std::sqrt(squares / n - mean * mean) / mean;
        EXPECT_NEAR(cv, load->name.starts_with("gamma") ? 3 : 1, 0.3) << spec;
    }
}

TEST(load_spec, a_household_resends_its_history) {
    const auto load = make_load("household:people=3,days=1", 3);
    ASSERT_TRUE(load) << load.error().message;
    ASSERT_GT(load->arrivals.size(), 50u);
    std::set<std::vector<TokenId>> pages;
    uint32_t shared = 0, background = 0;
    for (size_t row = 0; row < load->arrivals.size(); row++) {
        auto prompt = load->prompt_of(row);
        prompt.resize(std::min<size_t>(prompt.size(), kPageTokens));
        shared += !pages.insert(prompt).second;
        background += load->arrivals[row].priority == Priority::background;
    }
    EXPECT_GT(shared, load->arrivals.size() / 4);
    EXPECT_GT(background, 0u);
}

TEST(load_spec, says_what_is_not_understood) {
    for (const char* spec : {"", "flood", "poisson:rate", "poisson:speed=3", "poisson:rate=x", "poisson:rate=-1",
                             "poisson:rate=0", "gamma:cv=0", "poisson:cv=2", "household:people=0", "poisson:rate=1,"})
        EXPECT_FALSE(make_load(spec, 1)) << spec;
}

TEST(workload, scaling_stretches_time_and_no_length) {
    auto load = *make_load("poisson:rate=2,requests=500", 1);
    const auto before = load;
    load.scale_to(0.5, 1);
    EXPECT_NEAR(load.rate(), 0.5, 1e-6);
    for (size_t i = 0; i < load.arrivals.size(); i++) {
        EXPECT_EQ(load.arrivals[i].prompt, before.arrivals[i].prompt);
        EXPECT_NEAR(static_cast<double>(load.arrivals[i].at),
                    before.rate() / 0.5 * static_cast<double>(before.arrivals[i].at), 10);
    }
}

Promise promise_for(const StepCost& cost) {
    Promise promise;
    promise.gap = promise.stall = 5 * isolated_decode(cost);
    return promise;
}

TEST(simulation, one_request_alone_takes_what_its_steps_cost) {
    const StepCost cost = built_in_fit().cost;
    Workload one;
    one.arrivals = {{.at = 7, .prompt = 100, .output = 3}};
    const auto machine = machine_of("static-chunk", {}, {"", cost}, 100 * kNanosPerSecond);
    ASSERT_TRUE(machine);
    const Report report = simulate(*machine, one, promise_for(cost));
    EXPECT_EQ(report.requests, 1u);
    EXPECT_EQ(report.steps, 3u);
    ASSERT_TRUE(report.ttft && report.gap);
    EXPECT_EQ(report.ttft->max, isolated_prefill(cost, 100));
    StepShape decode;
    cost.add(decode, 101, 1, 1);
    EXPECT_EQ(report.gap->max, cost.predict(decode) * kNanosPerMicro);
    EXPECT_EQ(report.attained, 1.0);
    EXPECT_EQ(report.output_tokens, 3u);
}

TEST(simulation, every_row_ends_once_whatever_the_policy) {
    const auto load = make_load("gamma:rate=3,cv=4,requests=300,prompt=600,output=30", 5);
    ASSERT_TRUE(load);
    for (const std::string& policy : policy_names()) {
        Room room;
        room.kv_tokens = 8192;  // little: some are preempted
        room.context_tokens = 4096;
        room.queue = 8;
        const auto machine = machine_of(policy, room, built_in_fit(), 400 * kNanosPerMilli);
        ASSERT_TRUE(machine) << policy;
        std::vector<uint32_t> ends(load->arrivals.size());
        Simulation run(*machine, *load);
        uint64_t refused = 0;
        run.run([&](const Fate& fate, const std::vector<Nanos>&) {
            ends[fate.row]++;
            refused += fate.outcome == metrics::Outcome::refused;
            if (fate.outcome == metrics::Outcome::length) {
                EXPECT_EQ(fate.output, load->arrivals[fate.row].output);
            }
            return true;
        });
        for (const uint32_t count : ends) EXPECT_EQ(count, 1u) << policy;
        EXPECT_GT(refused, 0u) << policy;
    }
}

TEST(simulation, the_same_seed_gives_the_same_report) {
    const auto machine = *machine_of("static-chunk", {}, built_in_fit(), 400 * kNanosPerMilli);
    const auto promise = promise_for(machine.cost);
    const auto once = simulate(machine, *make_load("household:people=2,days=0.5", 9), promise);
    const auto again = simulate(machine, *make_load("household:people=2,days=0.5", 9), promise);
    EXPECT_EQ(once.ttft->p50, again.ttft->p50);
    EXPECT_EQ(once.gap->p99, again.gap->p99);
    EXPECT_EQ(once.span, again.span);
}

TEST(simulation, an_unsteady_machine_takes_its_own_time_for_reading_and_for_writing) {
    auto machine = *machine_of("static-chunk", {}, built_in_fit(), 400 * kNanosPerMilli);
    const auto load = *make_load("poisson:requests=1,prompt=200,output=20", 2);
    const auto promise = promise_for(machine.cost);
    const auto steady = simulate(machine, load, promise);
    machine.unsteady = {.reading = {2 * StepCost::kWhole}, .writing = {StepCost::kWhole / 2}};
    const auto other = simulate(machine, load, promise);
    EXPECT_NEAR(static_cast<double>(other.ttft->max), 2.0 * static_cast<double>(steady.ttft->max), 10 * kNanosPerMicro);
    EXPECT_NEAR(static_cast<double>(other.gap->p50), 0.5 * static_cast<double>(steady.gap->p50), 10 * kNanosPerMicro);
    machine.unsteady.writing = {StepCost::kWhole / 2, 3 * StepCost::kWhole};
    const auto wild = simulate(machine, load, promise);
    EXPECT_GT(wild.gap->max, 5 * wild.gap->p50 / 2);
    machine.unsteady.seed = 2;
    EXPECT_NE(simulate(machine, load, promise).gap_curve, wild.gap_curve);
    machine.unsteady.seed = 1;
    EXPECT_EQ(simulate(machine, load, promise).gap_curve, wild.gap_curve);
}

TEST(capacity, lies_between_a_rate_that_keeps_the_rule_and_one_that_does_not) {
    const auto load = *make_load("poisson:requests=200,prompt=200,output=20", 2);
    for (const Rule rule : {Rule::sarathi, Rule::distserve}) {
        const auto machine = *machine_of("static-chunk", {}, built_in_fit(), 400 * kNanosPerMilli);
        const auto promise = promise_for(machine.cost);
        const double found = capacity(machine, load, promise, rule, 1);
        ASSERT_GT(found, 0);
        auto probe = load;
        probe.scale_to(found, 1);
        EXPECT_TRUE(keeps(machine, probe, promise, rule));
        probe.scale_to(4 * found, 1);
        EXPECT_FALSE(keeps(machine, probe, promise, rule));
    }
}

TEST(capacity, is_no_number_where_no_rate_breaks_the_rule) {
    const auto load = *make_load("poisson:requests=1,prompt=20,output=2", 2);
    const auto machine = *machine_of("static-chunk", {}, built_in_fit(), 400 * kNanosPerMilli);
    EXPECT_TRUE(std::isinf(capacity(machine, load, promise_for(machine.cost), Rule::sarathi, 1)));
}

TEST(machine, names_the_policies_there_are) {
    const auto machine = machine_of("luck", {}, built_in_fit(), kNanosPerSecond);
    ASSERT_FALSE(machine);
    EXPECT_NE(machine.error().message.find("static-chunk"), std::string::npos);
}

TEST(machine, reads_a_fit_wherever_the_coefficients_stand_and_refuses_half_a_one) {
    const std::string whole =
        R"({"weights_ps":1,"row_ps":2,"step_ps":3,"prompt_key_ps":4,"decode_key_ps":5,"logits_ps":6})";
    const Scratch file("[{\"model\": \"m\", \"cost\": " + whole + "}]");
    const auto fit = read_fit(file.path());
    ASSERT_TRUE(fit) << fit.error().message;
    EXPECT_EQ(fit->cost.row_ps, 2u);
    EXPECT_EQ(fit->cost.logits_ps, 6u);
    for (const char* text : {"", "[]", "{\"weights_ps\": 1}", "{\"weights_ps\": -1}", "nonsense"}) {
        const Scratch half(text);
        EXPECT_FALSE(read_fit(half.path())) << text;
    }
}

TEST(machine, a_fit_is_not_looked_for_in_depths_that_nobody_writes) {
    const Scratch file(std::string(500'000, '[') + std::string(500'000, ']'));
    const auto fit = read_fit(file.path());
    ASSERT_FALSE(fit);
    EXPECT_EQ(fit.error().code, ErrorCode::bad_input);
    const Scratch words("[\"" + std::string(500, '[') + "\\\"[\", {\"weights_ps\": 1}]");
    EXPECT_NE(read_fit(words.path()).error().message.find("row_ps"), std::string::npos) << "brackets in text are text";
}

TEST(plot, draws_a_line_for_each_policy_and_survives_having_nothing_to_draw) {
    const std::string svg = plot_svg("a <b> & c", {{"cadence", {1000000, 2000000}, {5, 10}}, {"other", {}, {7}}});
    EXPECT_NE(svg.find("a &lt;b> &amp; c"), std::string::npos);
    EXPECT_NE(svg.find("cadence"), std::string::npos);
    size_t lines = 0;
    for (size_t at = svg.find("<polyline"); at != std::string::npos; at = svg.find("<polyline", at + 1)) lines++;
    EXPECT_EQ(lines, 2u);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(plot_svg("", {}).find("nan"), std::string::npos);
}

TEST(report, a_curve_keeps_its_ends) {
    std::vector<Nanos> values(10'000);
    for (size_t i = 0; i < values.size(); i++) values[i] = static_cast<Nanos>(i);
    const auto curve = curve_of(values);
    ASSERT_EQ(curve.size(), kCurvePoints);
    EXPECT_EQ(curve.front(), 0);
    EXPECT_EQ(curve.back(), 9999);
    EXPECT_TRUE(curve_of({}).empty());
}

}  // namespace
}  // namespace cadans::sim
