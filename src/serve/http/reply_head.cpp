#include "serve/http/reply_head.h"

#include <algorithm>
#include <array>
#include <ctime>

namespace cadans::serve {

namespace {

const char* reason_phrase(int status) {
    switch (status) {
        case 200:
            return "OK";
        case 204:
            return "No Content";
        case 304:
            return "Not Modified";
        case 400:
            return "Bad Request";
        case 401:
            return "Unauthorized";
        case 403:
            return "Forbidden";
        case 404:
            return "Not Found";
        case 405:
            return "Method Not Allowed";
        case 408:
            return "Request Timeout";
        case 413:
            return "Content Too Large";
        case 414:
            return "URI Too Long";
        case 415:
            return "Unsupported Media Type";
        case 417:
            return "Expectation Failed";
        case 429:
            return "Too Many Requests";
        case 431:
            return "Request Header Fields Too Large";
        case 500:
            return "Internal Server Error";
        case 501:
            return "Not Implemented";
        case 503:
            return "Service Unavailable";
        default:
            return "Status";
    }
}

}  // namespace

void append_field(std::string& out, std::string_view name, std::string_view value) {
    out += name;
    out += ": ";
    out += value;
    out += "\r\n";
}

namespace {

std::string http_date() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    std::array<char, 40> buffer{};
    return {buffer.data(), std::strftime(buffer.data(), buffer.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

}  // namespace

std::string reply_head(const HttpReply& reply, std::string_view id, bool keep) {
    std::string out = "HTTP/1.1 " + std::to_string(reply.status) + " " + reason_phrase(reply.status) + "\r\n";
    append_field(out, "Date", http_date());
    if (!reply.content_type.empty()) append_field(out, "Content-Type", reply.content_type);
    if (!id.empty()) append_field(out, "x-request-id", id);
    const bool says_how_long = std::any_of(reply.fields.begin(), reply.fields.end(),
                                           [](const HeaderField& field) { return field.first == "Cache-Control"; });
    if (!says_how_long) append_field(out, "Cache-Control", "no-store");
    append_field(out, "X-Content-Type-Options", "nosniff");
    for (const HeaderField& field : reply.fields) append_field(out, field.first, field.second);
    append_field(out, "Connection", keep ? "keep-alive" : "close");
    return out;
}

std::string chunk(std::string_view bytes) {
    constexpr char kHex[] = "0123456789abcdef";
    std::string out;
    out.reserve(bytes.size() + 12);
    bool digits = false;
    for (int shift = 28; shift >= 0; shift -= 4) {
        const size_t digit = (bytes.size() >> shift) & 15;
        digits = digits || digit > 0;
        if (digits) out += kHex[digit];
    }
    out += "\r\n";
    out += bytes;
    out += "\r\n";
    return out;
}

}  // namespace cadans::serve
