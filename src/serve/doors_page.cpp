// The page for people, with what lets a browser keep it and run nothing else.
#include <algorithm>
#include <cstdint>

#include "page/page.h"
#include "serve/doors.h"

namespace cadans::serve {

namespace {

/// Changes when the page does (FNV-1a; a name, not a secret).
std::string tag_of(std::string_view bytes) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
    constexpr char kHex[] = "0123456789abcdef";
    std::string out;
    for (int shift = 60; shift >= 0; shift -= 4) out += kHex[(hash >> shift) & 15];
    return out;
}

std::string_view trimmed(std::string_view text) {
    const size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

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

/// Whether gzip is among the codings that may be sent: named, and not with weight 0.
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

/// Whether a list of tags, each strong or weak, names this one; "*" names all.
bool names_tag(std::string_view list, std::string_view tag) {
    while (!list.empty()) {
        std::string_view one = next_part(list, ',');
        if (one.starts_with("W/")) one.remove_prefix(2);
        if (one == tag || one == "*") return true;
    }
    return false;
}

}  // namespace

Opened Doors::page(const HttpRequest& request) {
    static const std::string tag = tag_of(page::html());
    const bool packed = takes_gzip(request.field("accept-encoding"));
    const std::string entity = '"' + tag + (packed ? "-gz\"" : "\"");
    HttpReply reply{.content_type = "text/html; charset=utf-8", .body = {}};
    reply.fields = {{"ETag", entity}, {"Cache-Control", "no-cache"}, {"Vary", "Accept-Encoding"}};
    if (names_tag(request.field("if-none-match"), entity)) {
        reply.status = 304;
        reply.content_type.clear();
        return reply;
    }
    reply.body = packed ? page::html_gzip() : page::html();
    if (packed) reply.fields.emplace_back("Content-Encoding", "gzip");
    reply.fields.emplace_back("Content-Security-Policy", page::policy());
    reply.fields.emplace_back("X-Frame-Options", "DENY");
    reply.fields.emplace_back("Referrer-Policy", "no-referrer");
    return reply;
}

}  // namespace cadans::serve
