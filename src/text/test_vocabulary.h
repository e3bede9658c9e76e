// A vocabulary small enough to read, for the tests.
#pragma once

#include <string>
#include <vector>

#include "text/byte_alphabet.h"
#include "text/vocabulary.h"

namespace cadans::text {

/// All 256 bytes, a few merges ("hello" among them), and the marks of a conversation.
inline VocabularyData small_bpe(std::string pre = "qwen2") {
    VocabularyData data;
    data.model = "gpt2";
    data.pre = std::move(pre);
    const auto add = [&](std::string token, int32_t type) {
        data.tokens.push_back(std::move(token));
        data.token_types.push_back(type);
    };
    for (uint32_t b = 0; b < 256; b++) add(spell(std::string(1, static_cast<char>(b))), 1);
    for (const char* merge : {"h e", "l l", "he ll", "hell o", "Ġ hello", "i m", "Ġ Ġ"}) {
        data.merges.push_back(merge);
        std::string made = merge;
        made.erase(made.find(' ', 1), 1);
        add(made, 1);
    }
    for (const char* name : {"<|im_start|>", "<|im_end|>", "<|endoftext|>"}) add(name, 3);
    for (const char* name : {"<think>", "</think>", "\n\n"}) add(name, 4);
    add("[PAD0]", 5);
    data.eos = static_cast<uint32_t>(data.tokens.size() - 6);
    return data;
}

/// Pieces with scores, byte tokens, and the marks of a conversation.
inline VocabularyData small_sentencepiece() {
    VocabularyData data;
    data.model = "llama";
    const auto add = [&](std::string token, float score, int32_t type) {
        data.tokens.push_back(std::move(token));
        data.scores.push_back(score);
        data.token_types.push_back(type);
    };
    add("<unk>", 0, 2);
    add("<s>", 0, 3);
    add("</s>", 0, 3);
    constexpr char kHex[] = "0123456789ABCDEF";
    for (uint32_t b = 0; b < 256; b++) add(std::string("<0x") + kHex[b / 16] + kHex[b % 16] + ">", 0, 6);
    float score = -1;
    for (const char* piece : {"▁h", "ll", "▁he", "▁hell", "▁hello", "▁", "h", "e", "l", "o", "<", "s", "<s", ">"})
        add(piece, score--, 1);
    data.bos = 1;
    data.eos = 2;
    data.unknown = 0;
    return data;
}

}  // namespace cadans::text
