// A model file's words: its vocabulary and chat templates, as the text floor takes them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/gguf.h"
#include "text/vocabulary.h"

namespace cadans::model {

/// The tokenizer keys of a file, each of its right type; text::Vocabulary::make checks them against each
/// other. Errors: bad_input with key and offset; also when there is no tokenizer.
Result<text::VocabularyData> read_vocabulary(const GgufFile& file);

/// A chat template of the file, as source text.
struct TemplateSource {
    std::string name;  ///< empty for the default one, else as in `tokenizer.chat_template.NAME`
    std::string source;
};

/// All templates of the file, the default one first; empty when there is none (a base model). Errors:
/// bad_input where one is not text.
Result<std::vector<TemplateSource>> read_templates(const GgufFile& file);

}  // namespace cadans::model
