#include <array>

#include "serve/dialects/common_fields.h"
#include "serve/dialects/field_reader.h"
#include "serve/dialects/generation_request.h"

namespace cadans::serve {

namespace {

constexpr size_t kInputsMax = 2048;

/// As llama.cpp's converters number them.
enum FilePooling : uint64_t { none = 0, mean = 1, cls = 2, last = 3 };

/// What the model's file names, and the mean where it names nothing.
Result<Pooling> pooling_of(const ServedModel& model) {
    const std::string key = model.file.architecture + ".pooling_type";
    for (const auto& [name, value] : model.file.metadata) {
        if (name != key) continue;
        const auto* number = std::get_if<uint64_t>(&value);
        if (number != nullptr && *number == FilePooling::cls) return Pooling::first;
        if (number != nullptr && *number == FilePooling::last) return Pooling::last;
        if (number == nullptr || *number > FilePooling::last)
            return unsupported("model: \"" + model.name + "\" does not give vectors: its file has another " + key +
                                   " than none, mean, cls and last",
                               "model");
    }
    return Pooling::mean;
}

/// A text, a list of texts; where `ids` are taken too, a list of ids, or a list of lists of ids.
void read_inputs(FieldReader& reader, const char* field, bool ids, GenerationRequest& request) {
    const Json* input = reader.find(field);
    const std::string where = field;
    if (input == nullptr) return reader.fail(bad_input(where + ": a text or a list of texts is needed", where));
    std::vector<PromptText> texts;
    std::vector<PromptIds> lists;
    const text::Vocabulary& vocabulary = request.model->tokenizer->vocabulary();
    const auto add_ids = [&](const Json& list, const std::string& place) {
        Result<PromptIds> read = read_token_ids(list, vocabulary, place);
        if (!read) return reader.fail(std::move(read).error());
        lists.push_back(*std::move(read));
    };
    if (input->is_string()) {
        texts.push_back(input->get<std::string>());
    } else if (!input->is_array() || input->empty()) {
        return reader.fail(wrong(where, "a text or a list of texts was expected", *input));
    } else if (ids && input->front().is_number()) {
        add_ids(*input, where);
    } else {
        if (input->size() > kInputsMax)
            return reader.fail(bad_input(where + ": at most " + std::to_string(kInputsMax) + " are taken", where));
        const bool all_ids = ids && input->front().is_array();
        for (size_t i = 0; i < input->size() && !reader.failed(); ++i) {
            const std::string place = where + "[" + std::to_string(i) + "]";
            const Json& one = (*input)[i];
            if (all_ids)
                add_ids(one, place);
            else if (one.is_string())
                texts.push_back(one.get<std::string>());
            else
                reader.fail(wrong(place, "a text was expected", one));
        }
    }
    if (lists.empty())
        request.prompt = std::move(texts);
    else
        request.prompt = std::move(lists);
}

constexpr std::array kRefused = {RefusedField{"truncate", neutral_if_empty},
                                 RefusedField{"truncate_prompt_tokens", neutral_if_zero}};

/// What all three routes share; nothing to draw.
Result<GenerationRequest> begin(FieldReader& reader, const Catalog& catalog, AnswerForm form) {
    GenerationRequest request;
    request.form = form;
    request.model = read_model(reader, catalog, form != AnswerForm::embeddings);
    if (reader.failed()) return reader.take_error();
    Result<Pooling> pooling = pooling_of(*request.model);
    if (!pooling) return std::move(pooling).error();
    request.embedding = *pooling;
    request.max_tokens = 0;
    request.split_reasoning = false;
    request.parse_special = false;
    read_asker(reader, request);
    refuse(reader, kRefused);
    if (const Json* dimensions = reader.find("dimensions")) {
        const uint32_t own = request.model->file.embedding_length;
        if (!dimensions->is_number_integer() || *dimensions != own)
            reader.fail(unsupported("dimensions: this model's vectors have " + std::to_string(own) +
                                        " numbers, and no shorter ones are made of them",
                                    "dimensions"));
    }
    if (reader.failed()) return reader.take_error();
    return request;
}

}  // namespace

Result<GenerationRequest> parse_embeddings(const Json& body, const Catalog& catalog) {
    FieldReader reader(body);
    Result<GenerationRequest> request = begin(reader, catalog, AnswerForm::embeddings);
    if (!request) return request;
    const std::string format = reader.string("encoding_format", "float");
    if (format != "float" && format != "base64")
        reader.fail(bad_input("encoding_format: float or base64 was expected", "encoding_format"));
    request->base64 = format == "base64";
    read_inputs(reader, "input", true, *request);
    if (reader.failed()) return reader.take_error();
    return request;
}

Result<GenerationRequest> parse_ollama_embed(const Json& body, const Catalog& catalog) {
    FieldReader reader(body);
    Result<GenerationRequest> request = begin(reader, catalog, AnswerForm::ollama_embed);
    if (!request) return request;
    const Json* input = reader.find("input");
    request->load_only = input == nullptr || neutral_if_empty(*input);
    if (request->load_only) return request;
    read_inputs(reader, "input", false, *request);
    if (reader.failed()) return reader.take_error();
    return request;
}

Result<GenerationRequest> parse_ollama_embeddings(const Json& body, const Catalog& catalog) {
    FieldReader reader(body);
    Result<GenerationRequest> request = begin(reader, catalog, AnswerForm::ollama_embeddings);
    if (!request) return request;
    const std::string prompt = reader.string("prompt");
    request->load_only = prompt.empty();
    request->prompt = std::vector<PromptText>{prompt};
    if (reader.failed()) return reader.take_error();
    return request;
}

}  // namespace cadans::serve
