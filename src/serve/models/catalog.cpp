#include <string>

#include "serve/dialects/generation_request.h"

namespace cadans::serve {

ServedModel::ServedModel(ModelCard card) : ModelCard(std::move(card)) {
    if (chat_template != nullptr) {
        markers = tokenizer->markers_of(chat_template->source());
        reasoning = text::reasoning_style_of(chat_template->source());
        calls = call_format_of(chat_template->source());
    }
    grammars = std::make_unique<GrammarShelf>(tokenizer->vocabulary(), reasoning, calls.style);
}

Catalog::Catalog(std::vector<ModelCard> cards) {
    for (ModelCard& card : cards) models_.emplace_back(std::move(card));
}

Result<const ServedModel*> Catalog::find(std::string_view name, bool ollama_names) const {
    if (models_.empty()) return Error{ErrorCode::unavailable, "there is no model", {}};
    if (name.empty() || name == "default") return &models_.front();
    for (const ServedModel& model : models_)
        if (model.name == name) return &model;
    constexpr std::string_view kLatest = ":latest";
    if (ollama_names && name.ends_with(kLatest)) {
        const std::string_view stem = name.substr(0, name.size() - kLatest.size());
        for (const ServedModel& model : models_)
            if (model.name == stem) return &model;
    }
    std::string known;
    for (const ServedModel& model : models_) known += (known.empty() ? "" : ", ") + model.name;
    return Error{ErrorCode::not_found,
                 "there is no model \"" + std::string(name.substr(0, 200)) + "\" here; there are: " + known, "model"};
}

}  // namespace cadans::serve
