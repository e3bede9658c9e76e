#include "sched/admission.h"

#include <algorithm>
#include <functional>
#include <string>

#include "kv/page_needs.h"

namespace cadans::sched {
namespace {

Error too_long(std::string message) { return {ErrorCode::too_long, std::move(message)}; }

}  // namespace

const ModelFacts* House::find(ModelId model) const noexcept {
    const auto found =
        std::find_if(models.begin(), models.end(), [&](const ModelFacts& m) { return m.model == model; });
    return found == models.end() ? nullptr : &*found;
}

uint64_t promised_bytes(const House& house, const ModelFacts& model, uint32_t prompt, uint32_t max_new_tokens,
                        uint32_t known) noexcept {
    const uint32_t soon = std::min(tokens_computed_max(prompt, max_new_tokens), known + kPageTokens);
    return kv::most_bytes(model, soon, house.limits.max_rows);
}

uint32_t longest_sequence(const House& house, const ModelFacts& model) noexcept {
    return kv::largest_fit(model, house.limits.max_rows, house.page_bytes);
}

Status could_run(const House& house, const SequenceRequest& request) {
    const ModelFacts* model = house.find(request.model);
    if (model == nullptr) {
        return Error{ErrorCode::not_found,
                     "no model with number " + std::to_string(index(request.model)) + " is loaded"};
    }
    if (request.prompt.empty()) return bad_input("the prompt has no tokens; at least one is needed", "prompt");

    const uint64_t tokens = uint64_t{request.prompt.size()} + request.max_new_tokens;
    if (tokens > model->context_tokens) {
        return too_long("the prompt has " + std::to_string(request.prompt.size()) + " tokens and up to " +
                        std::to_string(request.max_new_tokens) + " more are asked for, " + std::to_string(tokens) +
                        " together; the context holds " + std::to_string(model->context_tokens));
    }
    const uint32_t computed = tokens_computed_max(static_cast<uint32_t>(request.prompt.size()), request.max_new_tokens);
    if (const uint32_t longest = longest_sequence(house, *model); computed > longest) {
        return too_long("the request needs room for " + std::to_string(computed) + " tokens; all pages together hold " +
                        std::to_string(longest));
    }

    for (size_t i = 0; i < request.prompt.size(); i++) {
        if (index(request.prompt[i]) < model->vocab_size) continue;
        return bad_input("token " + std::to_string(index(request.prompt[i])) + " is outside the vocabulary of " +
                             std::to_string(model->vocab_size),
                         "prompt[" + std::to_string(i) + "]");
    }
    const auto& ends = request.end_tokens;
    if (std::adjacent_find(ends.begin(), ends.end(), std::greater_equal<TokenId>()) != ends.end()) {
        return bad_input("end tokens must ascend without repeats", "end_tokens");
    }
    return Ok{};
}

}  // namespace cadans::sched
