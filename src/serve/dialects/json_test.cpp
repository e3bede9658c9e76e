#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "serve/dialects/json_body.h"
#include "serve/dialects/json_writer.h"

namespace cadans::serve {
namespace {

std::string error_of(std::string_view body) {
    auto parsed = parse_body(body);
    return parsed ? "" : parsed.error().message;
}

TEST(json_body, takes_an_object) {
    auto parsed = parse_body(R"({"a": [1, -2, 3.5, null, true, "x"], "b": {}})");
    ASSERT_TRUE(parsed);
    EXPECT_EQ((*parsed)["a"].size(), 6u);
    EXPECT_TRUE((*parsed)["b"].is_object());
}

TEST(json_body, keeps_the_order_of_keys) {
    auto parsed = parse_body(R"({"z": 1, "a": 2, "m": 3})");
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->dump(), R"({"z":1,"a":2,"m":3})");
}

TEST(json_body, refuses_what_is_no_json_object) {
    for (const char* body : {"",
                             "null",
                             "3",
                             "\"a\"",
                             "[]",
                             "{",
                             "{}{}",
                             "{} x",
                             "{\"a\":}",
                             "{'a':1}",
                             "{\"a\":1,}",
                             "{\"a\": NaN}",
                             "{\"a\": Infinity}",
                             "{\"a\": -Infinity}",
                             "{\"a\": 1e999}",
                             "{\"a\": 01}",
                             "{\"a\": \"\\ud800\"}",
                             "{\"a\": \"\xFF\"}",
                             "{\"a\": \"\xED\xA0\x80\"}",
                             "\xEF\xBB\xBF{}",
                             "{\"a\": \"\n\"}",
                             "/* c */ {}"})
        EXPECT_NE(error_of(body), "") << body;
}

TEST(json_body, names_a_key_that_comes_twice) {
    auto parsed = parse_body(R"({"a": [{"b": 1}, {"c": {"d": 1, "d": 2}}]})");
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().where, "a[1].c.d");
}

TEST(json_body, limits_depth_and_values) {
    const auto nested = [](size_t depth) {
        return "{\"a\":" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
    };
    EXPECT_EQ(error_of(nested(64)), "");
    EXPECT_NE(error_of(nested(65)), "");
    EXPECT_NE(error_of("{\"a\":" + std::string(100'000, '[')), "");
    std::string many = "{\"a\":[0";
    for (int i = 0; i < 1'000'000; ++i) many += ",0";
    EXPECT_NE(error_of(many + "]}"), "");
}

TEST(json_body, reads_many_keys_in_little_time) {
    std::string body = "{";
    for (int i = 0; i < 200'000; ++i) body += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":1";
    EXPECT_EQ(error_of(body + "}"), "");
}

TEST(json_writer, escapes_and_nests) {
    std::string out;
    JsonWriter json(out);
    json.object()
        .key("a\"b")
        .array()
        .number(1)
        .number(-2)
        .text("x\n\t\x01\\")
        .close()
        .key("c")
        .null()
        .key("d")
        .boolean(true);
    json.key("e").object().close().close();
    EXPECT_EQ(out, "{\"a\\\"b\":[1,-2,\"x\\n\\t\\u0001\\\\\"],\"c\":null,\"d\":true,\"e\":{}}");
}

TEST(json_writer, writes_only_valid_utf8) {
    std::string out;
    append_escaped(out, "gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80 \xFF \xC3 \xED\xA0\x80 \xF4\x90\x80\x80");
    EXPECT_TRUE(is_utf8(out));
    EXPECT_TRUE(out.starts_with("gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80 \xEF\xBF\xBD "));
}

TEST(json_writer, prints_floats_that_read_back_exactly) {
    for (uint64_t i = 0; i < 20'000; ++i) {
        const auto bits = static_cast<uint32_t>(mix64(i));
        float number = 0;
        std::memcpy(&number, &bits, sizeof number);
        if (!std::isfinite(number)) continue;
        std::string out;
        append_number(out, number);
        EXPECT_EQ(std::strtof(out.c_str(), nullptr), number) << out;
    }
    std::string out;
    append_number(out, -0.1F);
    EXPECT_EQ(out, "-0.1");
}

TEST(json_writer, writes_null_for_what_is_no_number) {
    std::string out;
    append_number(out, std::numeric_limits<double>::quiet_NaN());
    append_number(out, std::numeric_limits<float>::infinity());
    EXPECT_EQ(out, "nullnull");
}

}  // namespace
}  // namespace cadans::serve
