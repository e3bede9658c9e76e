#include "text/pre_tokenizer.h"

#include <array>
#include <span>

#include "text/character_class.h"
#include "text/cut_rules.h"
#include "text/utf8.h"

namespace cadans::text {
namespace {

using namespace std::string_view_literals;

struct Family {
    std::span<const std::string_view> names;
    std::span<const CutRule> rules;
    bool whole_words, nfc, adds_bos;
};

constexpr std::array kLlama3Names = {"llama-bpe"sv, "llama3"sv, "llama-v3"sv, "falcon3"sv, "lfm2"sv, "pixtral"sv};
constexpr std::array kLlama3KinNames = {"dbrx"sv, "smaug-bpe"sv, "glm4"sv, "chatglm-bpe"sv};
constexpr std::array kQwen2Names = {"qwen2"sv};
constexpr std::array kQwen2KinNames = {"deepseek-r1-qwen"sv, "megrez"sv, "stablelm2"sv, "hunyuan"sv};
constexpr std::array kQwen35Names = {"qwen35"sv};
constexpr std::array kO200kNames = {"gpt-4o"sv, "llama4"sv, "kanana2"sv, "minimax-m2"sv};
constexpr std::array kTekkenNames = {"tekken"sv};
constexpr std::array kGpt2Names = {"gpt-2"sv,   "phi-2"sv,  "mpt"sv,         "olmo"sv,           "jais"sv,
                                   "exaone4"sv, "mellum"sv, "modern-bert"sv, "granite-docling"sv};
constexpr std::array kStarcoderNames = {"smollm"sv,    "starcoder"sv, "refact"sv,    "command-r"sv,
                                        "codeshell"sv, "exaone"sv,    "minerva-7b"sv};
constexpr std::array kDeepseekNames = {"deepseek-v3"sv, "hunyuan-dense"sv, "joyai-llm"sv};
constexpr std::array kDefaultNames = {"default"sv};

constexpr std::array<CutRule, 1> kLlama3 = {cut::llama3}, kQwen2 = {cut::qwen2}, kQwen35 = {cut::qwen35},
                                 kO200k = {cut::o200k}, kTekken = {cut::tekken}, kGpt2 = {cut::gpt2};
constexpr std::array<CutRule, 2> kStarcoder = {cut::one_digit, cut::gpt2};
constexpr std::array<CutRule, 3> kDeepseek = {cut::three_digits, cut::cjk_run, cut::deepseek};
constexpr std::array<CutRule, 4> kDefault = {cut::punctuation_run, cut::gpt2, cut::digit_run, cut::three_ascii_digits};

const std::array<Family, 11> kFamilies = {{
    {kLlama3Names, kLlama3, true, false, true},
    {kLlama3KinNames, kLlama3, false, false, false},
    {kQwen2Names, kQwen2, false, true, false},
    {kQwen2KinNames, kQwen2, false, false, false},
    {kQwen35Names, kQwen35, false, true, false},
    {kO200kNames, kO200k, true, false, false},
    {kTekkenNames, kTekken, true, false, true},
    {kGpt2Names, kGpt2, false, false, false},
    {kStarcoderNames, kStarcoder, false, false, false},
    {kDeepseekNames, kDeepseek, false, false, false},
    {kDefaultNames, kDefault, false, false, false},
}};

const Family* find_family(std::string_view name) {
    if (name.empty()) name = "default";
    for (const Family& family : kFamilies) {
        for (const std::string_view known : family.names) {
            if (known == name) return &family;
        }
    }
    return nullptr;
}

/// Appends the ends of the pieces of [begin, end): words by `rule`, and what lies between words.
void cut_piece(const CharacterText& text, CutRule rule, size_t begin, size_t end, std::vector<uint32_t>& ends) {
    size_t piece = begin;
    for (size_t at = begin; at < end;) {
        const size_t word_end = rule(text, at, end);
        if (word_end == at) {
            at++;
            continue;
        }
        if (piece < at) ends.push_back(static_cast<uint32_t>(at));
        ends.push_back(static_cast<uint32_t>(word_end));
        piece = at = word_end;
    }
    if (piece < end) ends.push_back(static_cast<uint32_t>(end));
}

}  // namespace

CharacterText::CharacterText(std::string_view text) {
    code_points.reserve(text.size());
    classes.reserve(text.size());
    offsets.reserve(text.size() + 1);
    for (size_t at = 0; at < text.size();) {
        const Utf8Char c = utf8_at(text, at);
        code_points.push_back(c.code_point);
        classes.push_back(character_class(c.code_point));
        offsets.push_back(static_cast<uint32_t>(at));
        at += c.bytes;
    }
    offsets.push_back(static_cast<uint32_t>(text.size()));
}

std::optional<PreTokenizer> find_pre_tokenizer(std::string_view name) {
    const Family* family = find_family(name);
    if (family == nullptr) return std::nullopt;
    return PreTokenizer{
        {family->rules.begin(), family->rules.end()}, family->whole_words, family->nfc, family->adds_bos};
}

bool pre_adds_bos(std::string_view name) {
    const Family* family = find_family(name);
    return family != nullptr && family->adds_bos;
}

std::vector<uint32_t> cut_words(const PreTokenizer& pre, std::string_view text) {
    const CharacterText characters(text);
    const auto n = static_cast<uint32_t>(characters.code_points.size());
    std::vector<uint32_t> ends, finer;
    if (n > 0) ends.push_back(n);
    for (const CutRule rule : pre.rules) {
        finer.clear();
        size_t begin = 0;
        for (const uint32_t end : ends) {
            cut_piece(characters, rule, begin, end, finer);
            begin = end;
        }
        std::swap(ends, finer);
    }
    for (uint32_t& end : ends) end = characters.offsets[end];
    return ends;
}

}  // namespace cadans::text
