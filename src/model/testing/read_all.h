// Everything that reading a model file can lead to, for tests that feed it damaged ones.
#pragma once

#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "model/memory.h"
#include "model/vocabulary_reader.h"
#include "model/weights.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace cadans::model::testing {

/// How far a file came before it was refused.
enum class Reached { refused, parsed, has_spec, has_tokenizer, loaded };

/// Parses, reads the spec, makes the tokenizer and uses it, parses templates, loads small models and uses
/// the embedding. `why` gets the refusal.
inline Reached read_all(std::span<const std::byte> bytes, ThreadPool& pool, Error& why) {
    constexpr uint64_t kLoadBytesMax = uint64_t{64} << 20;
    auto file = GgufFile::parse(bytes, "mutated.gguf");
    if (!file) return why = file.error(), Reached::refused;
    auto spec = read_spec(*file);
    if (!spec) why = spec.error();
    auto data = read_vocabulary(*file);
    if (!data) return why = data.error(), spec ? Reached::has_spec : Reached::parsed;
    auto vocabulary = text::Vocabulary::make(*std::move(data));
    if (!vocabulary) return why = vocabulary.error(), spec ? Reached::has_spec : Reached::parsed;
    auto tokenizer = text::Tokenizer::make(*std::move(vocabulary));
    if (!tokenizer) return why = tokenizer.error(), spec ? Reached::has_spec : Reached::parsed;
    const std::vector<TokenId> ids = tokenizer->encode("the abc <|end|> \xF0\x9F\x98\x80", {.parse_special = true});
    for (const TokenId id : ids) (void)tokenizer->vocabulary().bytes(id);
    const auto templates = read_templates(*file);
    if (templates)
        for (const TemplateSource& each : *templates) (void)text::ChatTemplate::parse(each.source).has_value();
    if (!spec) return Reached::parsed;
    const MemoryEstimate estimate = estimate_memory(*spec, *file);
    if (estimate.weight_bytes > kLoadBytesMax) return Reached::has_tokenizer;
    auto model = Model::load(*file, *std::move(spec), pool);
    if (!model) return why = model.error(), Reached::has_tokenizer;
    std::vector<float> row((*model)->spec().width);
    for (const uint32_t token : {0U, (*model)->spec().vocab - 1}) (*model)->embedding_row(token, row);
    return Reached::loaded;
}

}  // namespace cadans::model::testing
