#include "grammar/lark.h"

#include "grammar/lark_reader.h"
#include "grammar/one_source.h"

namespace cadans::grammar {

Result<RuleId> add_lark(Rules& rules, std::string_view source) { return LarkReader(source, rules).read(); }

Result<Grammar> lark_grammar(std::string_view source, const Limits& limits) {
    return grammar_of_source<LarkReader>(source, limits);
}

}  // namespace cadans::grammar
