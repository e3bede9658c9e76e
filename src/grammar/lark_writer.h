// Writes what was read of a Lark grammar into rules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/pattern.h"

namespace cadans::grammar {

/// A call of it stands for what is ignored in front of a terminal, until it is known whether anything is.
inline constexpr RuleId kLarkIgnored = UINT32_MAX;

struct LarkDefinition {
    RuleId rule;
    Pattern pattern;
    std::string where;
};

/// What a %ignore says.
struct LarkIgnored {
    Pattern pattern;
    std::string where;
};

/// Errors: bad_input for what becomes too large, unsupported where text could be read in two ways; each with its line.
Status write_lark(Rules& rules, std::vector<LarkDefinition> definitions, std::vector<LarkIgnored> ignored);

}  // namespace cadans::grammar
