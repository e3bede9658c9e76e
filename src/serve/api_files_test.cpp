// Runs the exchanges of tests/api, and holds docs/api.md to the table of numbers.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>

#include "serve/dialects/field_rules.h"
#include "serve/testing/test_house.h"

namespace cadans::serve {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string contents(const fs::path& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

// Where `got` does not hold what `wanted` says; empty when it does.
std::string difference(const ordered_json& wanted, const ordered_json& got, const std::string& at) {
    if (wanted == "*") return "";
    if (wanted.is_object()) {
        if (!got.is_object()) return at + " is no object";
        for (const auto& [key, value] : wanted.items()) {
            if (!got.contains(key)) return at + "." + key + " is missing";
            if (std::string found = difference(value, got[key], at + "." + key); !found.empty()) return found;
        }
        return "";
    }
    if (wanted.is_array() && got.is_array() && wanted.size() == got.size()) {
        for (size_t i = 0; i < wanted.size(); ++i)
            if (std::string found = difference(wanted[i], got[i], at + "[" + std::to_string(i) + "]"); !found.empty())
                return found;
        return "";
    }
    if (wanted.is_number_float() && got.is_number()) return wanted.dump() == got.dump() ? "" : at + " is " + got.dump();
    return wanted == got ? "" : at + " is " + got.dump() + ", not " + wanted.dump();
}

std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> out;
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
}

void check_exchange(TestHouse& house, const fs::path& path) {
    const std::vector<std::string> lines = lines_of(contents(path));
    ASSERT_GE(lines.size(), 5u) << path;
    const size_t space = lines[0].find(' ');
    TestClient client(house.server->port());
    const TestReply reply = client.exchange(lines[0].substr(0, space), lines[0].substr(space + 1), lines[1]);
    ASSERT_EQ(lines[2], "---") << path;
    EXPECT_EQ(std::to_string(reply.status), lines[3]) << path << reply.body;
    if (lines[4] != "stream:") {
        EXPECT_EQ(difference(ordered_json::parse(lines[4]), reply.json(), "reply"), "") << path << "\n" << reply.body;
        return;
    }
    const auto got = reply.body.starts_with("data: ") ? reply.frames() : reply.lines();
    ASSERT_EQ(got.size(), lines.size() - 5) << path << "\n" << reply.body;
    for (size_t i = 0; i < got.size(); ++i) {
        const ordered_json frame =
            got[i] == "[DONE]" ? ordered_json("[DONE]") : ordered_json::parse(got[i], nullptr, false);
        EXPECT_EQ(difference(ordered_json::parse(lines[5 + i]), frame, "frame " + std::to_string(i)), "") << path;
    }
}

TEST(api_files, are_answered_as_they_say) {
    TestHouse house;
    house.say("hello");
    size_t files = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(CADANS_SOURCE_DIR) / "tests/api")) {
        if (entry.path().extension() != ".txt") continue;
        check_exchange(house, entry.path());
        ++files;
    }
    EXPECT_GE(files, 10u);
}

std::string printed(double number) {
    std::ostringstream out;
    out.precision(17);
    if (number == static_cast<double>(static_cast<int64_t>(number)))
        out << static_cast<int64_t>(number);
    else
        out << std::defaultfloat << std::setprecision(6) << number;
    return out.str();
}

TEST(api_docs, list_every_number_as_the_table_has_it) {
    const std::string docs = contents(fs::path(CADANS_SOURCE_DIR) / "docs/api.md");
    const size_t ollama = docs.find("### Ollama (`options`)");
    ASSERT_NE(ollama, std::string::npos);
    const auto check_rules = [](std::span<const NumberRule> rules, const std::string& text) {
        for (const NumberRule& rule : rules) {
            std::string row = "| `" + std::string(rule.name) + "` | " + (rule.whole ? "whole" : "number") + " | " +
                              printed(rule.low) + " | " + printed(rule.high) + " | ";
            if (!rule.optional) row += printed(rule.fallback);
            EXPECT_NE(text.find(row), std::string::npos) << row;
        }
    };
    check_rules(kOpenAiNumbers, docs.substr(0, ollama));
    check_rules(kOllamaNumbers, docs.substr(ollama));
}

}  // namespace
}  // namespace cadans::serve
