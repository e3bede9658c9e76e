#include "serve/http/gate.h"

#include <gtest/gtest.h>

namespace cadans::serve {
namespace {

HttpRequest call(std::string method, std::vector<HeaderField> fields) {
    HttpRequest request;
    request.method = std::move(method);
    request.path = "/v1/models";
    request.fields = std::move(fields);
    return request;
}

int status_of(const ServerOptions& options, const HttpRequest& request) {
    const auto refusal = Gate(options).refuse(request, "192.168.1.5");
    return refusal ? refusal->status : 200;
}

TEST(gate, answers_for_its_own_names_only) {
    ServerOptions options;
    options.host_names = {"box.home"};
    for (const char* host : {"localhost", "localhost:11435", "127.0.0.1:1", "[::1]:11435", "LOCALHOST", "a.localhost",
                             "127.0.0.2:80", "192.168.1.5:80", "box.home", "Box.Home:11435", "localhost."})
        EXPECT_EQ(status_of(options, call("GET", {{"host", host}})), 200) << host;
    for (const char* host : {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "192.168.1.6", "",
                             "[::1", "127.1", "128.0.0.1", "localhost:x", "a:b:c", "localhost:123456", "box.home.evil"})
        EXPECT_EQ(status_of(options, call("GET", {{"host", host}})), 403) << host;
}

TEST(gate, lets_in_only_its_own_and_listed_origins) {
    ServerOptions options;
    options.allowed_origins = {"http://app.example:3000"};
    const auto from = [&](const char* origin) {
        return status_of(options, call("GET", {{"host", "127.0.0.1:11435"}, {"origin", origin}}));
    };
    EXPECT_EQ(from("http://127.0.0.1:11435"), 200);
    EXPECT_EQ(from("http://app.example:3000"), 200);
    for (const char* origin : {"http://evil.example", "null", "", "http://app.example", "https://app.example:3000",
                               "http://app.example:3000.evil.example", "http://127.0.0.1:11436"})
        EXPECT_EQ(from(origin), 403) << origin;
}

TEST(gate, answers_preflights_of_listed_origins_without_credentials) {
    ServerOptions options;
    options.allowed_origins = {"http://app.example"};
    options.api_key = "secret";
    const HttpRequest request = call("OPTIONS", {{"host", "localhost"}, {"origin", "http://app.example"}});
    auto reply = Gate(options).refuse(request, "127.0.0.1");
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 204);
    Gate(options).add_origin_fields(request, *reply);
    bool names_origin = false;
    for (const HeaderField& field : reply->fields) {
        names_origin =
            names_origin || (field.first == "Access-Control-Allow-Origin" && field.second == "http://app.example");
        EXPECT_NE(field.first, "Access-Control-Allow-Credentials");
    }
    EXPECT_TRUE(names_origin);
}

TEST(gate, asks_for_the_key_in_either_field) {
    ServerOptions options;
    options.api_key = "secret";
    const auto with = [&](const char* name, const char* value) {
        return status_of(options, call("GET", {{"host", "localhost"}, {name, value}}));
    };
    EXPECT_EQ(with("authorization", "Bearer secret"), 200);
    EXPECT_EQ(with("authorization", "bearer secret"), 200);
    EXPECT_EQ(with("x-api-key", "secret"), 200);
    for (const char* value : {"Bearer secre", "Bearer secrets", "Bearer ", "Basic secret", "secret", ""})
        EXPECT_EQ(with("authorization", value), 401) << value;
    EXPECT_EQ(with("x-api-key", "Secret"), 401);
}

TEST(gate, lets_anybody_open_the_page_but_call_nothing_without_the_key) {
    ServerOptions options;
    options.api_key = "secret";
    HttpRequest request = call("GET", {{"host", "localhost"}});
    for (const char* method : {"GET", "HEAD", "POST"}) {
        request.method = method;
        request.path = "/";
        EXPECT_EQ(status_of(options, request), request.method == "POST" ? 401 : 200) << method;
        for (const char* path : {"", "//", "/metrics", "/health/live", "/cadans/v1/now", "/v1/models"}) {
            request.path = path;
            EXPECT_EQ(status_of(options, request), 401) << method << path;
        }
    }
}

TEST(gate, wants_json_from_whatever_could_be_a_web_page) {
    const ServerOptions options;
    const auto of_type = [&](const char* type, const char* trace) {
        return status_of(options,
                         call("POST", {{"host", "localhost"}, {"content-type", type}, {trace, "same-origin"}}));
    };
    for (const char* trace : {"referer", "sec-fetch-site", "cookie", "x-nothing"}) {
        EXPECT_EQ(of_type("application/json", trace), 200);
        EXPECT_EQ(of_type("Application/JSON; charset=utf-8", trace), 200);
        for (const char* type : {"text/plain", "multipart/form-data; boundary=a"})
            EXPECT_EQ(of_type(type, trace), 415) << type;
    }
    const auto told = Gate(options).refuse(call("POST", {{"host", "localhost"}, {"content-type", "a/b"}}), "127.0.0.1");
    ASSERT_TRUE(told);
    EXPECT_EQ(told->body.find("key"), std::string::npos) << "a type is not about keys: " << told->body;
    const std::string form = "application/x-www-form-urlencoded";
    for (const char* trace : {"referer", "sec-fetch-site", "cookie"})
        EXPECT_EQ(of_type(form.c_str(), trace), 415) << trace;
    EXPECT_EQ(of_type(form.c_str(), "user-agent"), 200) << "curl -d without a type";
    EXPECT_EQ(of_type("", "user-agent"), 200);
}

TEST(gate, compares_whole_keys) {
    EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
    EXPECT_TRUE(equal_in_constant_time("", ""));
    for (const char* other : {"", "ab", "abcd", "abd", "abcabc"})
        EXPECT_FALSE(equal_in_constant_time(other, "abc")) << other;
}

}  // namespace
}  // namespace cadans::serve
