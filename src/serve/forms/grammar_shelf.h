// The grammars of one model: compiled when first asked for, kept while they are asked for again.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "serve/forms/answer_form.h"
#include "serve/forms/answer_grammar.h"
#include "serve/forms/thinking_lead.h"
#include "serve/forms/tool_use.h"
#include "text/reasoning.h"

namespace cadans::serve {

/// Thread-safe: what is compiled is compiled on the asker's thread, under a lock that other askers of this model wait
/// at. Borrows the vocabulary.
class GrammarShelf {
  public:
    static constexpr size_t kBytesMax = size_t{128} << 20;

    /// reasoning  how the model marks its thinking; its marks may be written where a grammar asks for them
    /// calls      how it calls tools; the same of its marks
    /// bytes_max  what is kept may have together, about; the grammar asked for last is kept whatever it has
    GrammarShelf(const text::Vocabulary& vocabulary, std::optional<text::ReasoningStyle> reasoning,
                 CallStyle calls = CallStyle::tagged, size_t bytes_max = kBytesMax);

    /// Null for a form that is `any` where there are no tools.
    ///
    /// lead    thinking that may come in front of the text
    /// Errors  bad_input and unsupported, `where` being the field and the place in what it holds; a refusal is kept as
    ///         a grammar is
    /// Cost    bounded by grammar::Limits, the first call also makes the model's GrammarTokens
    Result<std::shared_ptr<AnswerGrammar>> get(const TextForm& form, const ToolUse& tools, Lead lead);

    /// An answer has ended: lets go of what has grown too large. Never waits: where somebody compiles, the next one
    /// does it.
    void tidy();

    uint64_t compiled() const noexcept { return compiled_; }  ///< how often it was tried; thread rule: no other asks

  private:
    static constexpr size_t kKept = 32;
    static constexpr size_t kRefusalBytesMax = size_t{1} << 20;
    struct Kept {
        std::string key;
        std::shared_ptr<AnswerGrammar> grammar;
        size_t bytes() const noexcept { return key.size() + grammar->bytes(); }
    };

    struct Refused {
        std::string key;
        Error error;
    };
    struct Compiled {
        grammar::Grammar grammar;
        bool spaced;
    };

    void drop_worn();
    void drop_beyond_bounds();
    Error keep_refusal(std::string key, Error error);
    Status need_tokens();
    Result<Compiled> compile(const TextForm& form, const ToolUse& tools, Lead lead);
    Status add_answer(grammar::Rules& rules, grammar::Nfa& body, const ToolUse& tools, Lead lead,
                      std::optional<grammar::RuleId> text, bool spaced) const;

    const text::Vocabulary& vocabulary_;
    std::optional<text::ReasoningStyle> reasoning_;
    CallStyle calls_;
    size_t bytes_max_;
    std::mutex lock_;
    std::shared_ptr<GrammarTokens> tokens_;  ///< from the first grammar on
    std::list<Kept> kept_;                   ///< used last: first
    std::list<Refused> refused_;             ///< likewise
    uint64_t compiled_ = 0;
};

}  // namespace cadans::serve
