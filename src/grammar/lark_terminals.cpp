#include "grammar/lark_terminals.h"

#include <algorithm>
#include <array>
#include <utility>

namespace cadans::grammar {

std::optional<std::string_view> lark_common(std::string_view name) noexcept {
    using Entry = std::pair<std::string_view, std::string_view>;
    static constexpr std::array kCommon = {
        Entry{"DIGIT", "[0-9]"},
        Entry{"HEXDIGIT", "[0-9a-fA-F]"},
        Entry{"INT", "[0-9]+"},
        Entry{"SIGNED_INT", "[+\\-]?[0-9]+"},
        Entry{"DECIMAL", "[0-9]+\\.[0-9]*|\\.[0-9]+"},
        Entry{"FLOAT", "[0-9]+[eE][+\\-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+\\-]?[0-9]+)?"},
        Entry{"SIGNED_FLOAT", "[+\\-]?([0-9]+[eE][+\\-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+\\-]?[0-9]+)?)"},
        Entry{"NUMBER", "[0-9]+([eE][+\\-]?[0-9]+)?|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+\\-]?[0-9]+)?"},
        Entry{"SIGNED_NUMBER", "[+\\-]?([0-9]+([eE][+\\-]?[0-9]+)?|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+\\-]?[0-9]+)?)"},
        Entry{"ESCAPED_STRING", "\"([^\"\\\\\\n]|\\\\.)*\""},
        Entry{"LCASE_LETTER", "[a-z]"},
        Entry{"UCASE_LETTER", "[A-Z]"},
        Entry{"LETTER", "[a-zA-Z]"},
        Entry{"WORD", "[a-zA-Z]+"},
        Entry{"CNAME", "[_a-zA-Z][_a-zA-Z0-9]*"},
        Entry{"WS_INLINE", "[ \\t]+"},
        Entry{"WS", "[ \\t\\f\\r\\n]+"},
        Entry{"CR", "\\r"},
        Entry{"LF", "\\n"},
        Entry{"NEWLINE", "(\\r?\\n)+"},
        Entry{"SH_COMMENT", "#[^\\n]*"},
        Entry{"CPP_COMMENT", "//[^\\n]*"},
        Entry{"C_COMMENT", "/\\*(.|\\n)*?\\*/"},
        Entry{"SQL_COMMENT", "--[^\\n]*"},
    };
    const auto found = std::ranges::find(kCommon, name, &Entry::first);
    return found == kCommon.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace cadans::grammar
