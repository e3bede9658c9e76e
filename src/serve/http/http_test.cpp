// HTTP as clients speak it and as they should not, over real sockets.
#include <gtest/gtest.h>

#include "page/page.h"
#include "serve/doors.h"
#include "serve/testing/test_house.h"

namespace cadans::serve {
namespace {

constexpr const char* kAsk = R"({"prompt": "abc", "max_tokens": 3})";

TEST(http, keeps_a_line_open_and_answers_in_order) {
    TestHouse house;
    TestClient client(house.server->port());
    std::string requests;
    for (int i = 0; i < 5; ++i) {
        requests += TestClient::request("POST", "/v1/completions", kAsk);
        requests += TestClient::request("GET", "/health/live");
    }
    ASSERT_TRUE(client.send(requests));
    for (int i = 0; i < 5; ++i) {
        const TestReply answer = client.read();
        EXPECT_EQ(answer.status, 200) << answer.body;
        EXPECT_EQ(answer.json()["usage"]["completion_tokens"], 3);
        EXPECT_EQ(client.read().json()["status"], "live");
    }
}

TEST(http, answers_head_without_a_body) {
    TestHouse house;
    TestClient client(house.server->port());
    const TestReply head = client.exchange("HEAD", "/v1/models");
    EXPECT_EQ(head.status, 200);
    EXPECT_NE(head.fields.at("content-length"), "0");
    EXPECT_EQ(client.exchange("GET", "/v1/models").json()["data"][0]["id"], "toy");
}

TEST(http, sends_the_page_packed_or_not_and_only_when_it_changed) {
    TestHouse house;
    TestClient client(house.server->port());
    const auto fetch = [&](const std::vector<HeaderField>& fields) {
        std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\n";
        for (const HeaderField& field : fields) request += field.first + ": " + field.second + "\r\n";
        EXPECT_TRUE(client.send(request + "\r\n"));
        return client.read();
    };
    const TestReply plain = fetch({});
    EXPECT_EQ(plain.status, 200);
    EXPECT_EQ(plain.body, page::html());
    EXPECT_TRUE(plain.body.starts_with("<!doctype html>"));
    EXPECT_EQ(plain.fields.at("content-security-policy"), page::policy());
    EXPECT_NE(page::policy().find("default-src 'none'"), std::string_view::npos);
    EXPECT_EQ(plain.fields.at("cache-control"), "no-cache");
    const TestReply packed = fetch({{"Accept-Encoding", "br, gzip"}});
    EXPECT_EQ(packed.fields.at("content-encoding"), "gzip");
    EXPECT_EQ(packed.body, page::html_gzip());
    EXPECT_LT(packed.body.size(), plain.body.size() / 2);
    for (const char* refused : {"gzip;q=0", "gzip; q=0", "gzip;q=0.0", "br, gzip ; q=0.000", "x-gzip", "br"})
        EXPECT_EQ(fetch({{"Accept-Encoding", refused}}).body, plain.body) << refused;
    for (const char* taken : {"gzip;q=0.1", "GZIP", "br;q=0, gzip; q=1", "deflate,gzip"})
        EXPECT_EQ(fetch({{"Accept-Encoding", taken}}).body, packed.body) << taken;
    EXPECT_NE(packed.fields.at("etag"), plain.fields.at("etag"));
    const TestReply again = fetch({{"If-None-Match", plain.fields.at("etag")}});
    EXPECT_EQ(again.status, 304);
    EXPECT_TRUE(again.body.empty());
    const std::string tag = plain.fields.at("etag");
    for (const std::string& known : {"W/" + tag, "\"other\", " + tag, std::string("*")})
        EXPECT_EQ(fetch({{"If-None-Match", known}}).status, 304) << known;
    EXPECT_EQ(fetch({{"If-None-Match", "\"other\", W/\"none\""}}).status, 200);
    EXPECT_EQ(fetch({{"If-None-Match", packed.fields.at("etag")}}).status, 200) << "without gzip it is another entity";
}

TEST(http, says_continue_before_the_body_comes) {
    TestHouse house;
    TestClient client(house.server->port());
    const std::string body = kAsk;
    ASSERT_TRUE(
        client.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    "Expect: 100-continue\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n"));
    ASSERT_TRUE(client.until("100 Continue\r\n\r\n"));
    ASSERT_TRUE(client.send(body));
    EXPECT_EQ(client.read().status, 200);
}

TEST(http, reads_chunked_bodies) {
    TestHouse house;
    TestClient client(house.server->port());
    std::string request =
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n";
    for (const char c : std::string(kAsk)) request += std::string("1;x=y\r\n") + c + "\r\n";
    for (const char c : request + "0\r\n\r\n") ASSERT_TRUE(client.send({&c, 1}));
    EXPECT_EQ(client.read().status, 200);
    EXPECT_EQ(client.exchange("GET", "/health").status, 200);
}

TEST(http, speaks_http_1_0) {
    TestHouse house;
    TestClient client(house.server->port());
    const std::string body = R"({"prompt": "abc", "max_tokens": 3, "stream": true})";
    ASSERT_TRUE(client.send(
        "POST /v1/completions HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body));
    const TestReply reply = client.read();
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.fields.at("connection"), "close");
    EXPECT_NE(reply.body.find("data: [DONE]"), std::string::npos);
    EXPECT_TRUE(reply.body.starts_with("data: "));
    EXPECT_EQ(reply.frames().back(), "[DONE]");
}

TEST(http, takes_absolute_targets_but_checks_their_host) {
    TestHouse house;
    EXPECT_EQ(house.get("http://localhost/health").status, 200);
    EXPECT_EQ(house.get("http://evil.example/health").status, 403);
}

struct Fault {
    const char* name;
    std::string bytes;
    int status;
};

TEST(http, refuses_what_two_readers_could_understand_differently_and_closes) {
    TestHouse house;
    const std::string post = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    const std::vector<Fault> faults = {
        {"no host", "GET /health HTTP/1.1\r\n\r\n", 400},
        {"two hosts", "GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400},
        {"two lengths", post + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400},
        {"length list", post + "Content-Length: 2, 2\r\n\r\n{}", 400},
        {"negative length", post + "Content-Length: -1\r\n\r\n", 400},
        {"signed length", post + "Content-Length: +2\r\n\r\n{}", 400},
        {"length and chunks", post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        {"chunks and length", post + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n", 400},
        {"other encoding", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
        {"two encodings", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        {"chunks in 1.0", "POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        {"compressed", post + "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", 415},
        {"negative chunk", post + "Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n", 400},
        {"chunk without end", post + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n", 400},
        {"huge chunk", post + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n", 400},
        {"bare line feed", "GET /health HTTP/1.1\nHost: localhost\n\n", 400},
        {"folded", "GET /health HTTP/1.1\r\nHost: localhost\r\nA: b\r\n c\r\n\r\n", 400},
        {"space before colon", "GET /health HTTP/1.1\r\nHost : localhost\r\n\r\n", 400},
        {"no name", "GET /health HTTP/1.1\r\nHost: localhost\r\n: b\r\n\r\n", 400},
        {"no colon", "GET /health HTTP/1.1\r\nHost: localhost\r\nabc\r\n\r\n", 400},
        {"control character", std::string("GET /health HTTP/1.1\r\nHost: localhost\r\nA: \x01\r\n\r\n"), 400},
        {"other version", "GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n", 400},
        {"old version", "GET /health\r\n\r\n", 400},
        {"not http", "\x16\x03\x01\x02\x01\x01\xfc\x03\x03\r\n\r\n", 400},
        {"bad target", "GET health HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"bad escape", "GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"long target", "GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 414},
        {"large header", "GET / HTTP/1.1\r\nHost: localhost\r\nA: " + std::string(40'000, 'a') + "\r\n\r\n", 431},
        {"large body", post + "Content-Length: 16777217\r\n\r\n", 413},
        {"vast body", post + "Content-Length: 999999999999999999999\r\n\r\n", 400},
        {"expectation", post + "Expect: 200-ok\r\nContent-Length: 2\r\n\r\n{}", 417},
    };
    for (const Fault& fault : faults) {
        TestClient client(house.server->port());
        client.send(fault.bytes);
        EXPECT_EQ(client.read().status, fault.status) << fault.name;
        client.half_close();
        EXPECT_TRUE(client.closed_within(3000)) << fault.name;
    }
    std::string many = "GET / HTTP/1.1\r\nHost: localhost\r\n";
    for (int i = 0; i < 101; ++i) many += "A" + std::to_string(i) + ": b\r\n";
    TestClient client(house.server->port());
    client.send(many + "\r\n");
    EXPECT_EQ(client.read().status, 431);
    EXPECT_EQ(house.get("/health").status, 200);
}

TEST(http, stops_a_chunked_body_at_the_limit) {
    TestHouseOptions options;
    options.server.limits.body_bytes = 10'000;
    TestHouse house(options);
    TestClient client(house.server->port());
    client.send(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: "
        "chunked\r\n\r\n");
    for (int i = 0; i < 3; ++i) client.send("1000\r\n" + std::string(4096, ' ') + "\r\n");
    EXPECT_EQ(client.read().status, 413);
}

TEST(http, does_not_wait_for_ever) {
    TestHouseOptions options;
    options.server.limits.head = options.server.limits.body = options.server.limits.idle = 200 * kNanosPerMilli;
    TestHouse house(options);
    TestClient idle(house.server->port());
    TestClient slow_head(house.server->port());
    slow_head.send("GET /hea");
    TestClient slow_body(house.server->port());
    slow_body.send(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
        "20\r\n\r\n{");
    EXPECT_EQ(slow_head.read().status, 408);
    EXPECT_EQ(slow_body.read().status, 408);
    EXPECT_TRUE(idle.closed_within(3000));
}

TEST(http, caps_connections) {
    TestHouseOptions options;
    options.server.limits.connections = 4;
    TestHouse house(options);
    std::vector<std::unique_ptr<TestClient>> clients;
    for (int i = 0; i < 4; ++i) {
        clients.push_back(std::make_unique<TestClient>(house.server->port()));
        EXPECT_EQ(clients.back()->exchange("GET", "/health/live").status, 200);
    }
    EXPECT_EQ(house.get("/health/live").status, 503);
    EXPECT_EQ(clients.front()->exchange("GET", "/health/live").status, 200);
}

TEST(http, asks_for_the_key_on_every_route_but_the_page) {
    TestHouseOptions options;
    options.server.api_key = "sesame";
    options.load = false;
    TestHouse house(options);
    for (const Route& route : Doors::routes()) {
        std::string path = route.path;
        if (path == "/") continue;
        if (path.ends_with('*')) path.back() = 'x';
        for (const char* method : {"GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS"}) {
            TestClient client(house.server->port());
            EXPECT_EQ(client.exchange(method, path, method == std::string_view("POST") ? "{}" : "").status, 401)
                << method << path;
        }
        TestClient client(house.server->port());
        const bool post = route.method == std::string_view("POST");
        EXPECT_NE(client
                      .exchange(post ? "POST" : "HEAD", path, post ? "{}" : "",
                                post ? "Content-Type: application/json\r\nX-Api-Key: sesame\r\n"
                                     : "Authorization: Bearer sesame\r\n")
                      .status,
                  401)
            << path;
    }
    EXPECT_EQ(house.get("/no/such/route").status, 401);
}

TEST(http, answers_unknown_paths_and_methods_in_the_routes_own_form) {
    TestHouse house;
    EXPECT_EQ(house.get("/v1/rerank").status, 404);
    EXPECT_TRUE(house.get("/v1/rerank").json()["error"].is_object());
    EXPECT_TRUE(house.get("/api/rerank").json()["error"].is_string());
    const TestReply wrong = house.get("/v1/completions");
    EXPECT_EQ(wrong.status, 405);
    EXPECT_EQ(wrong.fields.at("allow"), "POST");
    EXPECT_EQ(TestClient(house.server->port()).exchange("DELETE", "/v1/models").status, 405);
}

TEST(http, is_there_before_the_model_is) {
    TestHouseOptions options;
    options.load = false;
    TestHouse house(options);
    house.server->loading(0.25);
    EXPECT_EQ(house.get("/health/live").status, 200);
    const TestReply loading = house.get("/health/ready");
    EXPECT_EQ(loading.status, 503);
    EXPECT_EQ(loading.json()["status"], "loading");
    EXPECT_EQ(loading.json()["done"], 0.25);
    const TestReply refused = house.post("/v1/completions", kAsk);
    EXPECT_EQ(refused.status, 503);
    EXPECT_TRUE(refused.fields.contains("retry-after"));
    house.load();
    EXPECT_EQ(house.get("/health").json()["status"], "ready");
    EXPECT_EQ(house.post("/v1/completions", kAsk).status, 200);
    house.server->failed("the file changed while it was in use");
    EXPECT_EQ(house.get("/health/ready").status, 503);
}

TEST(http, finishes_what_runs_when_it_drains) {
    auto house = std::make_unique<TestHouse>();
    house->engine->step_time = 20 * kNanosPerMilli;
    TestClient busy(house->server->port());
    TestClient idle(house->server->port());
    EXPECT_EQ(idle.exchange("GET", "/health/live").status, 200);
    busy.send(TestClient::request("POST", "/v1/completions", R"({"prompt": "abc", "max_tokens": 20, "stream": true})"));
    ASSERT_TRUE(busy.until("data: "));
    house->server->drain();
    EXPECT_TRUE(idle.closed_within(3000));
    EXPECT_EQ(house->get("/health/ready").status, 503);
    const TestReply answer = busy.read();
    EXPECT_EQ(answer.frames().back(), "[DONE]");
    house->http.join();
    house->http = std::jthread([] {});
}

TEST(http, ends_streams_with_an_error_when_it_must_stop) {
    auto house = std::make_unique<TestHouse>();
    house->engine->step_time = 20 * kNanosPerMilli;
    TestClient busy(house->server->port());
    busy.send(
        TestClient::request("POST", "/v1/completions", R"({"prompt": "abc", "max_tokens": 4000, "stream": true})"));
    ASSERT_TRUE(busy.until("data: "));
    house->server->stop();
    const TestReply answer = busy.read();
    const auto last = nlohmann::ordered_json::parse(answer.frames().back());
    EXPECT_TRUE(last["error"]["message"].is_string()) << answer.frames().back();
    EXPECT_EQ(answer.body.find("\"finish_reason\":\""), std::string::npos);
    house->http.join();
    house->http = std::jthread([] {});
}

TEST(http, says_when_the_port_is_taken) {
    TestHouse house;
    ServerOptions options;
    options.port = house.server->port();
    auto second = Server::open(options, house.metrics);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::io);
    EXPECT_NE(second.error().message.find("--port"), std::string::npos);
    options.host = "no such host";
    EXPECT_FALSE(Server::open(options, house.metrics));
}

}  // namespace
}  // namespace cadans::serve
