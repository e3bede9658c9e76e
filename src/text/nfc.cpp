#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "text/pre_tokenizer.h"
#include "text/utf8.h"

namespace cadans::text {
namespace {

uint16_t combining_class(int32_t c) { return static_cast<uint16_t>(utf8proc_get_property(c)->combining_class); }

/// Canonical order: marks by class, those of one class as they came. The library's own sort is quadratic in a run of
/// marks, which a hostile text can make as long as it likes.
void order_marks(std::vector<int32_t>& decomposed) {
    const auto first = decomposed.begin();
    for (size_t i = 0; i < decomposed.size();) {
        size_t j = i;
        while (j < decomposed.size() && combining_class(decomposed[j]) != 0) j++;
        if (j > i + 1)
            std::stable_sort(first + static_cast<ptrdiff_t>(i), first + static_cast<ptrdiff_t>(j),
                             [](int32_t a, int32_t b) { return combining_class(a) < combining_class(b); });
        i = j + 1;
    }
}

void append_composed(std::string& out, std::vector<int32_t>& code_points) {
    std::vector<int32_t> decomposed;
    decomposed.reserve(code_points.size());
    std::array<int32_t, 32> parts{};  // no canonical decomposition is longer than 4
    for (const int32_t c : code_points) {
        int last_boundary = 0;
        const auto n = utf8proc_decompose_char(c, parts.data(), parts.size(), UTF8PROC_DECOMPOSE, &last_boundary);
        if (n <= 0 || n > static_cast<utf8proc_ssize_t>(parts.size()))
            decomposed.push_back(c);
        else
            decomposed.insert(decomposed.end(), parts.begin(), parts.begin() + n);
    }
    code_points.clear();
    order_marks(decomposed);
    const auto n = utf8proc_normalize_utf32(decomposed.data(), static_cast<utf8proc_ssize_t>(decomposed.size()),
                                            static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    for (utf8proc_ssize_t i = 0; i < n; i++)
        append_utf8(out, static_cast<uint32_t>(decomposed[static_cast<size_t>(i)]));
}

}  // namespace

std::string to_nfc(std::string_view text) {
    // Nothing below U+0300 composes with a neighbour or decomposes canonically into something else than it composes to.
    constexpr unsigned char kFirstLeadOfMarks = 0xCC;
    if (std::none_of(text.begin(), text.end(),
                     [](char b) { return static_cast<unsigned char>(b) >= kFirstLeadOfMarks; }))
        return std::string(text);
    std::string out;
    out.reserve(text.size());
    std::vector<int32_t> pending;
    for (size_t at = 0; at < text.size();) {
        const Utf8Char c = utf8_at(text, at);
        at += c.bytes;
        if (c.valid()) {
            pending.push_back(static_cast<int32_t>(c.code_point));
            continue;
        }
        append_composed(out, pending);
        append_utf8(out, c.code_point);
    }
    append_composed(out, pending);
    return out;
}

}  // namespace cadans::text
