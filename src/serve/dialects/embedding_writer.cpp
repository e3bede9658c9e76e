#include "serve/dialects/embedding_writer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "serve/dialects/json_writer.h"

namespace cadans::serve {

namespace {

/// Of length 1; zeros stay what they are.
std::vector<float> normalised(std::span<const float> vector) {
    double squares = 0;
    for (const float value : vector) squares += static_cast<double>(value) * static_cast<double>(value);
    const double length = squares > 0 ? std::sqrt(squares) : 1.0;
    std::vector<float> out;
    out.reserve(vector.size());
    for (const float value : vector) out.push_back(static_cast<float>(static_cast<double>(value) / length));
    return out;
}

/// The numbers' bytes, lowest first, in base64.
std::string base64(std::span<const float> vector) {
    constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    for (const float value : vector)
        for (uint32_t bits = std::bit_cast<uint32_t>(value), i = 0; i < 4; ++i, bits >>= 8)
            bytes += static_cast<char>(bits & 0xFF);
    std::string out;
    for (size_t at = 0; at < bytes.size(); at += 3) {
        uint32_t three = 0;
        const size_t here = std::min<size_t>(3, bytes.size() - at);
        for (size_t i = 0; i < 3; ++i) three = three << 8 | (i < here ? static_cast<uint8_t>(bytes[at + i]) : 0U);
        for (size_t i = 0; i < 4; ++i) out += i <= here ? kDigits[three >> (18 - 6 * i) & 63] : '=';
    }
    return out;
}

void write_vector(JsonWriter& json, std::span<const float> vector) {
    json.array();
    for (const float value : vector) json.number(value);
    json.close();
}

}  // namespace

std::string EmbeddingWriter::whole(std::span<const ChoiceText> choices, std::span<const FinishReason>,
                                   const Closing& closing) {
    std::string out;
    JsonWriter json(out);
    json.object();
    if (head_.form == AnswerForm::embeddings) {
        json.key("object").text("list").key("data").array();
        for (const ChoiceText& choice : choices) {
            json.object().key("object").text("embedding").key("index").number(choice.index).key("embedding");
            const std::vector<float> vector = normalised(choice.embedding);
            head_.base64 ? void(json.text(base64(vector))) : write_vector(json, vector);
            json.close();
        }
        json.close().key("model").text(head_.model).key("usage");
        write_usage(json, closing.figures, 0, std::nullopt);
    } else if (head_.form == AnswerForm::ollama_embed) {
        json.key("model").text(head_.model).key("embeddings").array();
        for (const ChoiceText& choice : choices) write_vector(json, normalised(choice.embedding));
        json.close();
        json.key("total_duration").number(closing.durations.total_duration);
        json.key("load_duration").number(closing.durations.load_duration);
        json.key("prompt_eval_count").number(closing.durations.prompt_eval_count);
    } else {
        json.key("embedding");
        write_vector(json, choices.front().embedding);
    }
    json.key("cadans").raw(closing.cadans).close();
    return out;
}

}  // namespace cadans::serve
