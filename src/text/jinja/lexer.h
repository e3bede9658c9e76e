// Cuts a template's source into text and the words of its statements.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cadans::text::jinja {

struct Token {
    enum class Kind { data, block_begin, block_end, print_begin, print_end, name, string, integer, real, symbol, end };
    Kind kind = Kind::end;
    std::string text = {};  // data, name, decoded string, symbol
    int64_t integer = 0;
    double real = 0;
    uint32_t line = 1;

    bool is_symbol(std::string_view s) const noexcept { return kind == Kind::symbol && text == s; }
    bool is_name(std::string_view s) const noexcept { return kind == Kind::name && text == s; }
};

/// All tokens, ended by one of kind `end`. White space goes as Jinja's trim_blocks and lstrip_blocks say, both on, and
/// one newline at the very end goes too. Errors: bad_input with the line. Cost: linear.
Result<std::vector<Token>> lex(std::string_view source);

}  // namespace cadans::text::jinja
