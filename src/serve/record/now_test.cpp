// Goal: who watches the stream of now learns all that its seconds held. Method: an engine whose step takes longer than
// what a second waits for before it is told, and a watcher who keeps the newest telling of each second.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "serve/testing/test_house.h"

namespace cadans::serve {
namespace {

using nlohmann::json;

TEST(now, a_step_of_several_seconds_is_found_in_all_of_them) {
    TestHouse house;
    house.engine->step_time = 2'500 * kNanosPerMilli;
    TestClient watcher(house.server->port());
    ASSERT_TRUE(watcher.send(TestClient::request("GET", "/cadans/v1/now/stream")));
    ASSERT_TRUE(watcher.until("event: now"));
    EXPECT_EQ(house.post("/v1/completions", R"({"prompt": "ab", "max_tokens": 1})").status, 200);
    std::this_thread::sleep_for(std::chrono::milliseconds(1'800));  // the second in which it ended is told too
    house.server->stop();

    Nanos step = 0;
    std::map<Nanos, Nanos> worked;  // of each second
    for (const std::string& line : watcher.read().lines()) {
        if (!line.starts_with("data: ")) continue;
        const json told = json::parse(line.substr(6));
        for (const json& each : told.value("steps", json::array())) {
            ASSERT_EQ(step, 0) << "one step is all that there is";
            step = each["end_ns"].get<Nanos>() - each["begin_ns"].get<Nanos>();
        }
        for (const json& second : told.value("seconds", json::array()))
            worked[second["at_ns"].get<Nanos>()] =
                second["prefill"]["ns"].get<Nanos>() + second["decode"]["ns"].get<Nanos>();
    }
    EXPECT_GE(step, 2'500 * kNanosPerMilli);
    Nanos all = 0;
    for (const auto& [at, ns] : worked) all += ns;
    EXPECT_EQ(all, step);
}

}  // namespace
}  // namespace cadans::serve
