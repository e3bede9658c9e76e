#include "serve/http/query.h"

#include <charconv>

#include "base/hex.h"

namespace cadans::serve {

std::optional<std::string> query_value(std::string_view query, std::string_view name) {
    while (!query.empty()) {
        const size_t end = std::min(query.find('&'), query.size());
        const std::string_view pair = query.substr(0, end);
        query.remove_prefix(std::min(end + 1, query.size()));
        const size_t equals = std::min(pair.find('='), pair.size());
        if (pair.substr(0, equals) != name) continue;
        const std::string_view raw = pair.substr(std::min(equals + 1, pair.size()));
        std::string value;
        for (size_t i = 0; i < raw.size(); ++i) {
            const int high = raw[i] == '%' && i + 2 < raw.size() ? hex_digit(raw[i + 1]) : -1;
            const int low = high >= 0 ? hex_digit(raw[i + 2]) : -1;
            if (low >= 0) {
                value += static_cast<char>(high * 16 + low);
                i += 2;
            } else {
                value += raw[i] == '+' ? ' ' : raw[i];
            }
        }
        if (value.empty()) return std::nullopt;
        return value;
    }
    return std::nullopt;
}

Result<int64_t> query_number(std::string_view query, std::string_view name, int64_t low, int64_t high,
                             int64_t fallback) {
    const std::optional<std::string> text = query_value(query, name);
    if (!text) return fallback;
    int64_t number = 0;
    const auto [end, trouble] = std::from_chars(text->data(), text->data() + text->size(), number);
    if (trouble != std::errc() || end != text->data() + text->size() || number < low || number > high)
        return bad_input(
            std::string(name) + " must be a whole number from " + std::to_string(low) + " to " + std::to_string(high),
            std::string(name));
    return number;
}

}  // namespace cadans::serve
