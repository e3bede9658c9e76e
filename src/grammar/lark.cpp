#include "grammar/lark.h"

#include "grammar/lark_reader.h"

namespace cadans::grammar {

Result<RuleId> add_lark(Rules& rules, std::string_view source) { return LarkReader(source, rules).read(); }

Result<Grammar> lark_grammar(std::string_view source, const Limits& limits) {
    Rules rules(limits);
    LarkReader reader(source, rules);
    auto root = reader.read();
    if (!root) return std::move(root).error();
    auto grammar = rules.compile(*root);
    if (!grammar) return reader.placed(std::move(grammar).error());
    return grammar;
}

}  // namespace cadans::grammar
