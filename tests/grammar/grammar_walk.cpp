// Writes random answers through the masks of a grammar, and says which given texts it takes: the other side of
// schema_test.py and schema_suite_test.py.
//
// Each line of stdin is {"kind": "schema" | "regex" | "gbnf" | "json", "source": …, "walks": N, "seed": N,
// "open": bool, "texts": [text…]}; each line of stdout {"refused": {"code", "message", "where"}} or
// {"written": [text…], "unfinished": N, "taken": [bool…], "compile_us": N}.
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "grammar/gbnf.h"
#include "grammar/json_text.h"
#include "grammar/lark.h"
#include "grammar/regex.h"
#include "grammar/schema.h"
#include "grammar/token_mask.h"

namespace {

using namespace cadans;
using namespace cadans::grammar;
using nlohmann::ordered_json;

constexpr int kStepsMax = 1'500, kClosingFrom = 40;

std::vector<std::string> vocabulary() {
    std::vector<std::string> tokens = {""};  // ends answers
    for (int byte = 0; byte < 256; byte++) tokens.emplace_back(1, static_cast<char>(byte));
    for (const char* text : {"\": ",  "\":",   "\", \"",   "\"}",     "\"]",
                             "{\"",   "[\"",   "[[",       "]]",      "}}",
                             "}, {",  "\n  ",  "\n\n",     "true",    "false",
                             "null",  "12",    "-1",       ".5",      "e1",
                             "0.0",   "99",    "\\n",      "\\u00e9", "\\ud83d\\ude00",
                             "\\\"",  "é",     "\xC3",     "\xA9\"",  "日本",
                             "🙂",  "hello", " world",   "abc",     "\", ",
                             "2024-", "-02-",  "T10:",     "ab\"",    "aa",
                             "foo",   "bar",   "a",        "\"foo\"", "\"bar\": ",
                             "[1, 2", "], ",   "\xF0\x9F", "1,",      "0}",
                             "  ",    " \""})
        tokens.emplace_back(text);
    return tokens;
}

Result<Grammar> compile(const ordered_json& job) {
    const std::string kind = job.at("kind");
    if (kind == "json") return json_mode();
    const SchemaOptions options{.undeclared_properties = job.value("open", false)};
    if (kind == "schema") return schema_grammar(job.at("source"), options);
    const std::string source = job.at("source");
    if (kind == "schema text") return schema_text_grammar(source, options);
    if (kind == "lark") return lark_grammar(source);
    return kind == "regex" ? regex_grammar(source) : gbnf_grammar(source);
}

/// A walk prefers what closes once it is long, so that most walks end.
std::string pick(const std::vector<std::string>& tokens, const std::vector<uint32_t>& allowed, int step,
                 std::mt19937& random) {
    std::vector<uint32_t> closing;
    if (step > kClosingFrom)
        for (const uint32_t id : allowed)
            if (tokens[id].find_first_of("\"]}") == 0 ||
                (tokens[id].size() == 1 && tokens[id][0] != ',' && tokens[id][0] != '[' && tokens[id][0] != '{' &&
                 step < 2 * kClosingFrom))
                closing.push_back(id);
    const auto& from = closing.empty() ? allowed : closing;
    return tokens[from[random() % from.size()]];
}

ordered_json answer(const ordered_json& job, const std::vector<std::string>& tokens, const TokenTrie& trie) {
    const auto begin = std::chrono::steady_clock::now();
    auto grammar = compile(job);
    const auto spent = std::chrono::steady_clock::now() - begin;
    if (!grammar)
        return {{"refused",
                 {{"code", grammar.error().code == ErrorCode::unsupported ? "unsupported" : "bad_input"},
                  {"message", grammar.error().message},
                  {"where", grammar.error().where}}}};
    Stacks stacks(*grammar);
    MaskCache cache(trie);
    TokenMask mask(cache, stacks);
    ordered_json out = {{"written", ordered_json::array()}, {"unfinished", 0}, {"taken", ordered_json::array()}};
    std::mt19937 random(job.value("seed", 1U));
    std::vector<uint64_t> bits(trie.words());
    for (int walk = 0; walk < job.value("walks", 0); walk++) {
        Matcher matcher(stacks);
        std::string text;
        bool ended = false;
        for (int step = 0; step < kStepsMax && !ended; step++) {
            if (!mask.fill(matcher, bits)) break;
            std::vector<uint32_t> allowed;
            for (uint32_t id = 1; id < tokens.size(); id++)
                if (bits[id / 64] >> (id % 64) & 1) allowed.push_back(id);
            const bool may_end = bits[0] & 1;
            if (allowed.empty() && !may_end) throw std::runtime_error("no token may come behind " + text);
            ended = may_end && (allowed.empty() || step > kClosingFrom || random() % 3 == 0);
            if (ended) break;
            const std::string next = pick(tokens, allowed, step, random);
            if (!matcher.accept(next)) throw std::runtime_error("a token of the mask is not accepted behind " + text);
            text += next;
        }
        if (ended)
            out["written"].push_back(text);
        else
            out["unfinished"] = out["unfinished"].get<int>() + 1;
    }
    const auto texts = job.value("texts", std::vector<std::string>{});
    for (const std::string& text : texts) {
        Matcher matcher(stacks);
        out["taken"].push_back(matcher.accept(text) && matcher.may_end());
    }
    stacks.check_invariants();
    out["compile_us"] = std::chrono::duration_cast<std::chrono::microseconds>(spent).count();
    return out;
}

}  // namespace

int main() {
    const std::vector<std::string> tokens = vocabulary();
    const std::vector<std::string_view> views(tokens.begin(), tokens.end());
    const TokenId end{0};
    const auto trie = TokenTrie::make(views, std::span(&end, 1));
    std::string line;
    try {
        while (std::getline(std::cin, line))
            std::cout << answer(ordered_json::parse(line), tokens, *trie).dump() << std::endl;
    } catch (const std::exception& e) {
        std::cerr << e.what() << "\n";
        return 1;
    }
    return 0;
}
