#include "text/utf8.h"

#include <algorithm>

namespace cadans::text {
namespace {

struct Lead {
    uint32_t bytes;     // 0: no character starts so
    uint8_t low, high;  // range of the second byte (Unicode 15, table 3-7)
    uint32_t payload;
};

Lead lead_of(uint8_t b) noexcept {
    if (b < 0x80) return {1, 0, 0, b};
    if (b < 0xC2) return {0, 0, 0, 0};
    if (b < 0xE0) return {2, 0x80, 0xBF, b & 0x1Fu};
    if (b < 0xF0)
        return {3, b == 0xE0 ? uint8_t{0xA0} : uint8_t{0x80}, b == 0xED ? uint8_t{0x9F} : uint8_t{0xBF}, b & 0x0Fu};
    if (b < 0xF5)
        return {4, b == 0xF0 ? uint8_t{0x90} : uint8_t{0x80}, b == 0xF4 ? uint8_t{0x8F} : uint8_t{0xBF}, b & 0x07u};
    return {0, 0, 0, 0};
}

/// How many bytes from `at` form a character or a proper beginning of one; at least 1.
size_t good_bytes(std::string_view text, size_t at, const Lead& lead) noexcept {
    size_t n = 1;
    while (n < lead.bytes && at + n < text.size()) {
        const auto b = static_cast<uint8_t>(text[at + n]);
        const bool fits = n == 1 ? b >= lead.low && b <= lead.high : (b & 0xC0) == 0x80;
        if (!fits) break;
        n++;
    }
    return n;
}

}  // namespace

Utf8Char utf8_at(std::string_view text, size_t at) noexcept {
    const auto first = static_cast<uint8_t>(text[at]);
    const Lead lead = lead_of(first);
    if (lead.bytes == 0 || good_bytes(text, at, lead) < lead.bytes) return {kStrayByte + first, 1};
    uint32_t code_point = lead.payload;
    for (uint32_t k = 1; k < lead.bytes; k++)
        code_point = code_point << 6 | (static_cast<uint8_t>(text[at + k]) & 0x3Fu);
    return {code_point, lead.bytes};
}

void append_utf8(std::string& out, uint32_t c) {
    const auto put = [&out](uint32_t b) { out.push_back(static_cast<char>(b)); };
    if (c >= kStrayByte) return put(c - kStrayByte);
    if (c < 0x80) return put(c);
    if (c < 0x800) {
        put(0xC0 | c >> 6);
    } else if (c < 0x10000) {
        put(0xE0 | c >> 12);
        put(0x80 | (c >> 6 & 0x3F));
    } else {
        put(0xF0 | c >> 18);
        put(0x80 | (c >> 12 & 0x3F));
        put(0x80 | (c >> 6 & 0x3F));
    }
    put(0x80 | (c & 0x3F));
}

size_t utf8_unfinished(std::string_view text) noexcept {
    for (size_t back = 1; back <= std::min<size_t>(3, text.size()); back++) {
        const size_t at = text.size() - back;
        const Lead lead = lead_of(static_cast<uint8_t>(text[at]));
        if (lead.bytes > back && good_bytes(text, at, lead) == back) return back;
    }
    return 0;
}

std::string utf8_repaired(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
        const Lead lead = lead_of(static_cast<uint8_t>(text[at]));
        const size_t good = lead.bytes == 0 ? 1 : good_bytes(text, at, lead);
        if (lead.bytes != 0 && good == lead.bytes) {
            out.append(text, at, good);
        } else {
            out.append("\xEF\xBF\xBD");
        }
        at += good;
    }
    return out;
}

size_t utf8_length(std::string_view text) noexcept {
    size_t n = 0;
    for (size_t at = 0; at < text.size(); n++) at += utf8_at(text, at).bytes;
    return n;
}

}  // namespace cadans::text
