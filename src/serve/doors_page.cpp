// The page for people, with what lets a browser keep it and run nothing else.
#include <cstdint>

#include "page/page.h"
#include "serve/doors.h"
#include "serve/http/field_value.h"

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
