// A model file that has been read once by a child that could have died, before anything here reads it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/child.h"
#include "model/gguf.h"
#include "model/spec.h"
#include "model/vocabulary_reader.h"

namespace cadans::model {

/// All that loading a model needs to know of its file.
struct OpenedModel {
    GgufFile file;
    ModelSpec spec;
    text::VocabularyData vocabulary;
    std::vector<TemplateSource> templates;  ///< the default first; may be empty
};

/// The same reading without a child: file, spec, vocabulary, templates.
Result<OpenedModel> open_model(const std::string& path);

/// Reads everything that loading will read but the weights, in a child: file, spec, vocabulary, tokenizer
/// and templates. A template that cannot be used is no error here; chat will say so.
///
/// Errors  those of GgufFile, read_spec, Vocabulary and Tokenizer; internal where the child died
Status vet_model(const std::string& path, const ChildLimits& limits = {});

/// vet_model, then open_model. Errors: those of both.
Result<OpenedModel> safe_open(const std::string& path, const ChildLimits& limits = {});

}  // namespace cadans::model
