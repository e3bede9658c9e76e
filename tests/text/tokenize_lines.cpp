// Reads a vocabulary and texts, writes token ids: the other side of tokenizer_differential.py.
//
// usage: tokenize_lines VOCABULARY.json < TEXTS
// VOCABULARY.json has the fields of text::VocabularyData. Each line of TEXTS is one JSON string. Each line written has
// the ids of that text, then "=" when they detokenize to the text again, else "!".
#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "text/character_class.h"
#include "text/detokenizer.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace {

using namespace cadans;
using nlohmann::json;

text::VocabularyData read_vocabulary(const char* path) {
    std::ifstream file(path);
    const json j = json::parse(file);
    text::VocabularyData data;
    data.model = j.at("model");
    data.pre = j.at("pre");
    data.tokens = j.at("tokens").get<std::vector<std::string>>();
    data.scores = j.value("scores", std::vector<float>{});
    data.token_types = j.at("token_types").get<std::vector<int32_t>>();
    data.merges = j.value("merges", std::vector<std::string>{});
    if (j.contains("unknown")) data.unknown = j.at("unknown").get<uint32_t>();
    if (j.contains("add_space_prefix")) data.add_space_prefix = j.at("add_space_prefix").get<bool>();
    return data;
}

int run(const char* path) {
    auto vocabulary = text::Vocabulary::make(read_vocabulary(path));
    if (!vocabulary) {
        std::cerr << vocabulary.error().where << ": " << vocabulary.error().message << "\n";
        return 1;
    }
    auto tokenizer = text::Tokenizer::make(*std::move(vocabulary));
    if (!tokenizer) {
        std::cerr << tokenizer.error().message << "\n";
        return 1;
    }
    const auto pre = text::find_pre_tokenizer(tokenizer->vocabulary().pre());
    std::chrono::nanoseconds spent{0};
    size_t bytes = 0, tokens = 0;
    std::string line, out;
    while (std::getline(std::cin, line)) {
        const auto text = json::parse(line).get<std::string>();
        const auto start = std::chrono::steady_clock::now();
        const auto ids = tokenizer->encode(text, {.add_special = false});
        spent += std::chrono::steady_clock::now() - start;
        bytes += text.size();
        tokens += ids.size();
        out.clear();
        for (const TokenId id : ids) fmt::format_to(std::back_inserter(out), "{} ", index(id));
        const bool composed = pre && pre->nfc;
        const std::string expected = composed ? text::to_nfc(text) : text;
        out += text::detokenize(tokenizer->vocabulary(), ids) == expected ? "=\n" : "!\n";
        std::cout << out;
    }
    std::cerr << fmt::format("{} bytes, {} tokens, {:.1f} ms, Unicode {}\n", bytes, tokens,
                             std::chrono::duration<double, std::milli>(spent).count(), text::unicode_version());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: tokenize_lines VOCABULARY.json < TEXTS\n";
        return 2;
    }
    try {
        return run(argv[1]);
    } catch (const std::exception& e) {
        std::cerr << e.what() << "\n";
        return 1;
    }
}
