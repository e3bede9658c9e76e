// A grammar that is one source, whatever its language.
#pragma once

#include <string_view>
#include <utility>

#include "grammar/grammar.h"

namespace cadans::grammar {

/// Reads and compiles. Errors: those of the reader, and those of compiling with the line of the rule that they name.
///
/// Reader  made of a source and the rules that it adds to: read() gives the rule that is the answer, placed() an error
///         with its line
template <class Reader>
Result<Grammar> grammar_of_source(std::string_view source, const Limits& limits) {
    Rules rules(limits);
    Reader reader(source, rules);
    auto root = reader.read();
    if (!root) return std::move(root).error();
    auto grammar = rules.compile(*root);
    if (!grammar) return reader.placed(std::move(grammar).error());
    return grammar;
}

}  // namespace cadans::grammar
