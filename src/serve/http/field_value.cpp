#include "serve/http/field_value.h"

#include <algorithm>

namespace cadans::serve {

std::string_view trimmed(std::string_view text) {
    const size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

namespace {

/// What stands before the first `mark`, without blanks; `rest` goes on behind it.
std::string_view next_part(std::string_view& rest, char mark) {
    const size_t end = std::min(rest.find(mark), rest.size());
    const std::string_view part = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return part;
}

bool is_gzip(std::string_view coding) {
    constexpr std::string_view kName = "gzip";
    return std::ranges::equal(coding, kName, [](char c, char wanted) { return (c | 0x20) == wanted; });
}

}  // namespace

bool takes_gzip(std::string_view codings) {
    while (!codings.empty()) {
        std::string_view parameters = next_part(codings, ',');
        if (!is_gzip(next_part(parameters, ';'))) continue;
        while (!parameters.empty()) {
            std::string_view value = next_part(parameters, ';');
            const std::string_view name = next_part(value, '=');
            if (name != "q" && name != "Q") continue;
            return value.find_first_of("123456789") != std::string_view::npos;
        }
        return true;
    }
    return false;
}

bool names_tag(std::string_view list, std::string_view tag) {
    while (!list.empty()) {
        std::string_view one = next_part(list, ',');
        if (one.starts_with("W/")) one.remove_prefix(2);
        if (one == tag || one == "*") return true;
    }
    return false;
}

}  // namespace cadans::serve
