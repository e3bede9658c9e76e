#include "text/character_class.h"

#include <utf8proc.h>

#include <array>

namespace cadans::text {
namespace {

bool is_white_space(uint32_t c) noexcept {
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
           c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

uint8_t class_by_category(uint32_t c) noexcept {
    if (is_white_space(c)) return kSpace;
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
        case UTF8PROC_CATEGORY_LU:
        case UTF8PROC_CATEGORY_LT:
            return kCased;
        case UTF8PROC_CATEGORY_LL:
            return kLower;
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_LO:
            return kUncased;
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_MC:
        case UTF8PROC_CATEGORY_ME:
            return kMark;
        case UTF8PROC_CATEGORY_ND:
        case UTF8PROC_CATEGORY_NL:
        case UTF8PROC_CATEGORY_NO:
            return kNumber;
        case UTF8PROC_CATEGORY_PC:
        case UTF8PROC_CATEGORY_PD:
        case UTF8PROC_CATEGORY_PS:
        case UTF8PROC_CATEGORY_PE:
        case UTF8PROC_CATEGORY_PI:
        case UTF8PROC_CATEGORY_PF:
        case UTF8PROC_CATEGORY_PO:
            return kPunctuation;
        case UTF8PROC_CATEGORY_SM:
        case UTF8PROC_CATEGORY_SC:
        case UTF8PROC_CATEGORY_SK:
        case UTF8PROC_CATEGORY_SO:
            return kSymbol;
        default:
            return 0;
    }
}

// Most text is ASCII; a table of it saves two look-ups a character.
const std::array<uint8_t, 128> kAscii = [] {
    std::array<uint8_t, 128> table{};
    for (uint32_t c = 0; c < table.size(); c++) table[c] = class_by_category(c);
    return table;
}();

}  // namespace

uint8_t character_class(uint32_t code_point) noexcept {
    if (code_point < kAscii.size()) return kAscii[code_point];
    return code_point < 0x110000 ? class_by_category(code_point) : uint8_t{0};
}

const char* unicode_version() noexcept { return utf8proc_unicode_version(); }

}  // namespace cadans::text
