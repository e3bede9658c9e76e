#include "model/vocabulary_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace cadans::model {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";
constexpr std::string_view kTemplate = "tokenizer.chat_template";

std::string key(std::string_view name) { return std::string(kPrefix) + std::string(name); }

std::vector<std::string> copy(const std::vector<std::string_view>& views) { return {views.begin(), views.end()}; }

Status read_lists(const GgufFile& file, text::VocabularyData& data) {
    auto tokens = file.texts(key("tokens"));
    if (!tokens) return std::move(tokens).error();
    if (!*tokens) return file.error(ErrorCode::bad_input, "the key is missing", key("tokens"), 0);
    data.tokens = copy(**tokens);
    auto scores = file.numbers(key("scores"));
    if (!scores) return std::move(scores).error();
    if (*scores) data.scores = **std::move(scores);
    auto merges = file.texts(key("merges"));
    if (!merges) return std::move(merges).error();
    if (*merges) data.merges = copy(**merges);

    auto kinds = file.integers(key("token_type"));
    if (!kinds) return std::move(kinds).error();
    if (!*kinds) return Ok{};
    data.token_types.reserve((*kinds)->size());
    for (const int64_t kind : **kinds) {
        if (!std::in_range<int32_t>(kind))
            return file.error(ErrorCode::bad_input, fmt::format("token type {} is not known", kind), key("token_type"),
                              file.find(key("token_type"))->offset);
        data.token_types.push_back(static_cast<int32_t>(kind));
    }
    return Ok{};
}

Status read_ids(const GgufFile& file, text::VocabularyData& data) {
    const std::array<std::pair<std::string_view, std::optional<uint32_t>*>, 6> ids = {
        {{"bos_token_id", &data.bos},
         {"eos_token_id", &data.eos},
         {"eot_token_id", &data.eot},
         {"eom_token_id", &data.eom},
         {"unknown_token_id", &data.unknown},
         {"padding_token_id", &data.padding}}};
    for (const auto& [name, into] : ids) {
        auto id = file.count(key(name));
        if (!id) return std::move(id).error();
        if (!*id) continue;
        if (**id >= data.tokens.size())
            return file.error(ErrorCode::bad_input,
                              fmt::format("token {} does not exist; the vocabulary has {}", **id, data.tokens.size()),
                              key(name), file.find(key(name))->offset);
        *into = static_cast<uint32_t>(**id);
    }
    return Ok{};
}

Status read_flags(const GgufFile& file, text::VocabularyData& data) {
    const std::array<std::pair<std::string_view, std::optional<bool>*>, 3> flags = {
        {{"add_bos_token", &data.add_bos},
         {"add_eos_token", &data.add_eos},
         {"add_space_prefix", &data.add_space_prefix}}};
    for (const auto& [name, into] : flags) {
        auto flag = file.flag(key(name));
        if (!flag) return std::move(flag).error();
        *into = *flag;
    }
    return Ok{};
}

}  // namespace

Result<text::VocabularyData> read_vocabulary(const GgufFile& file) {
    text::VocabularyData data;
    auto model = file.text(key("model"));
    if (!model) return std::move(model).error();
    if (!*model)
        return file.error(ErrorCode::bad_input, "the key is missing: the file holds no tokenizer", key("model"), 0);
    data.model = **model;
    auto pre = file.text(key("pre"));
    if (!pre) return std::move(pre).error();
    data.pre = pre->value_or("");
    for (Status (*const step)(const GgufFile&, text::VocabularyData&) : {&read_lists, &read_ids, &read_flags}) {
        Status done = step(file, data);
        if (!done) return std::move(done).error();
    }
    return data;
}

Result<std::vector<TemplateSource>> read_templates(const GgufFile& file) {
    std::vector<TemplateSource> templates;
    for (const GgufEntry& entry : file.metadata()) {
        if (!entry.key.starts_with(kTemplate)) continue;
        const std::string_view rest = entry.key.substr(kTemplate.size());
        if (!rest.empty() && rest[0] != '.') continue;  // tokenizer.chat_templates lists the names
        auto source = file.text(entry.key);
        if (!source) return std::move(source).error();
        templates.push_back({std::string(rest.empty() ? rest : rest.substr(1)), std::string(**source)});
    }
    std::stable_partition(templates.begin(), templates.end(),
                          [](const TemplateSource& each) { return each.name.empty(); });
    return templates;
}

}  // namespace cadans::model
