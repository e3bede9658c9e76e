#include "serve/http/request_head.h"

#include <algorithm>
#include <cctype>

#include "base/hex.h"
#include "serve/http/field_value.h"

namespace cadans::serve {

namespace {

bool is_token_character(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return std::isalnum(byte) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool equal_names(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
        return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
    });
}

std::optional<HeadFault> line_fault(std::string_view line) {
    if (line.front() == ' ' || line.front() == '\t') return HeadFault{400, "a header field is folded over two lines"};
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return HeadFault{400, "a header line has no field name"};
    if (!std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(colon), is_token_character))
        return HeadFault{400, "a header field's name holds a character that cannot stand there"};
    for (const char c : line)
        if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F)
            return HeadFault{400, "a header field holds a control character"};
    return std::nullopt;
}

}  // namespace

std::optional<HeadFault> early_fault(std::string_view bytes, const HttpLimits& limits) {
    const size_t end = bytes.find("\r\n\r\n");
    if (end != std::string_view::npos) bytes = bytes.substr(0, end + 4);  // what follows is body
    if (!bytes.empty() && bytes.front() != '\r' && !is_token_character(bytes.front()))
        return HeadFault{400, "this is not an HTTP request"};
    for (size_t at = bytes.find('\n'); at != std::string_view::npos; at = bytes.find('\n', at + 1))
        if (at == 0 || bytes[at - 1] != '\r') return HeadFault{400, "a line ends without a carriage return"};
    const size_t first_line = bytes.find("\r\n");
    if (std::min(first_line, bytes.size()) > limits.target_bytes) return HeadFault{414, "the request line is too long"};
    if (bytes.size() > limits.head_bytes) return HeadFault{431, "the header is too large"};
    return std::nullopt;
}

std::optional<HeadFault> head_fault(std::string_view head, const HttpLimits& limits) {
    const size_t first = head.find("\r\n");
    const std::string_view request_line = head.substr(0, first);
    const bool is_1_1 = request_line.ends_with(" HTTP/1.1");
    if (!is_1_1 && !request_line.ends_with(" HTTP/1.0")) return HeadFault{400, "only HTTP/1.0 and HTTP/1.1 are spoken"};
    size_t fields = 0, hosts = 0, lengths = 0, encodings = 0;
    for (size_t at = first + 2; at + 2 < head.size();) {
        const size_t end = head.find("\r\n", at);
        const std::string_view line = head.substr(at, end - at);
        at = end + 2;
        if (line.empty()) break;
        if (++fields > limits.head_fields) return HeadFault{431, "there are too many header fields"};
        if (const auto fault = line_fault(line)) return fault;
        const size_t colon = line.find(':');
        const std::string_view name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
        if (equal_names(name, "host")) ++hosts;
        if (equal_names(name, "content-length")) {
            ++lengths;
            const bool digits = std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
            if (value.empty() || !digits || value.size() > 18) return HeadFault{400, "Content-Length is no length"};
        }
        if (equal_names(name, "transfer-encoding")) {
            ++encodings;
            if (!equal_names(value, "chunked")) return HeadFault{501, "only chunked transfer encoding is understood"};
        }
        if (equal_names(name, "content-encoding") && !equal_names(value, "identity"))
            return HeadFault{415, "compressed bodies are not understood"};
    }
    if (hosts > 1 || (is_1_1 && hosts == 0)) return HeadFault{400, "exactly one Host field is needed"};
    if (lengths > 1) return HeadFault{400, "there is more than one Content-Length"};
    if (encodings > 1 || (encodings == 1 && (lengths > 0 || !is_1_1)))
        return HeadFault{400, "the length of the body is given in two ways"};
    return std::nullopt;
}

bool split_target(std::string_view target, HttpRequest& out) {
    constexpr std::string_view kScheme = "http://";
    if (target.size() > kScheme.size() && equal_names(target.substr(0, kScheme.size()), kScheme)) {
        target.remove_prefix(kScheme.size());
        const size_t slash = target.find('/');
        const std::string host(target.substr(0, slash));
        std::erase_if(out.fields, [](const HeaderField& field) { return field.first == "host"; });
        out.fields.emplace_back("host", host);
        target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
    }
    if (target.empty() || (target.front() != '/' && target != "*")) return false;
    const size_t mark = target.find('?');
    if (mark != std::string_view::npos) out.query = target.substr(mark + 1);
    const std::string_view path = target.substr(0, mark);
    for (size_t i = 0; i < path.size(); ++i) {
        char c = path[i];
        if (c == '%') {
            const int high = i + 2 < path.size() ? hex_digit(path[i + 1]) : -1;
            const int low = high >= 0 ? hex_digit(path[i + 2]) : -1;
            if (low < 0) return false;
            c = static_cast<char>(high * 16 + low);
            i += 2;
        }
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return false;
        out.path += c;
    }
    return true;
}

}  // namespace cadans::serve
