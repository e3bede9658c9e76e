#include "serve/dialects/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/check.h"

namespace cadans::serve {

namespace {

// How many bytes from `at` are one whole valid character; 0 when none begins there (Unicode 15, table 3-7).
size_t character_bytes(std::string_view text, size_t at) noexcept {
    const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
    const auto is_tail = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
    const uint8_t lead = byte(at);
    if (lead < 0x80) return 1;
    if (lead >= 0xC2 && lead <= 0xDF) return is_tail(at + 1) ? 2 : 0;
    if (lead >= 0xE0 && lead <= 0xEF) {
        if (!is_tail(at + 1) || !is_tail(at + 2)) return 0;
        if (lead == 0xE0 && byte(at + 1) < 0xA0) return 0;
        if (lead == 0xED && byte(at + 1) > 0x9F) return 0;
        return 3;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        if (!is_tail(at + 1) || !is_tail(at + 2) || !is_tail(at + 3)) return 0;
        if (lead == 0xF0 && byte(at + 1) < 0x90) return 0;
        if (lead == 0xF4 && byte(at + 1) > 0x8F) return 0;
        return 4;
    }
    return 0;
}

void append_escape(std::string& out, uint8_t byte) {
    constexpr char kHex[] = "0123456789abcdef";
    switch (byte) {
        case '"':
            out += "\\\"";
            return;
        case '\\':
            out += "\\\\";
            return;
        case '\n':
            out += "\\n";
            return;
        case '\r':
            out += "\\r";
            return;
        case '\t':
            out += "\\t";
            return;
        default:
            break;
    }
    out += "\\u00";
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
}

template <class Number>
void append_chars(std::string& out, Number number) {
    std::array<char, 32> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
    out.append(buffer.data(), end.ptr);
}

}  // namespace

void append_escaped(std::string& out, std::string_view text) {
    size_t begin = 0, at = 0;
    while (at < text.size()) {
        const auto byte = static_cast<uint8_t>(text[at]);
        if (byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\' && byte != 0x7F) [[likely]] {
            ++at;
            continue;
        }
        if (byte >= 0x80) {
            const size_t bytes = character_bytes(text, at);
            if (bytes > 0) {
                at += bytes;
                continue;
            }
            out.append(text, begin, at - begin);
            out += "\xEF\xBF\xBD";
        } else {
            out.append(text, begin, at - begin);
            append_escape(out, byte);
        }
        begin = ++at;
    }
    out.append(text, begin, at - begin);
}

void append_number(std::string& out, float number) {
    if (std::isfinite(number))
        append_chars(out, number);
    else
        out += "null";
}
void append_number(std::string& out, double number) {
    if (std::isfinite(number))
        append_chars(out, number);
    else
        out += "null";
}
void append_number(std::string& out, int64_t number) { append_chars(out, number); }
void append_number(std::string& out, uint64_t number) { append_chars(out, number); }

bool is_utf8(std::string_view text) noexcept {
    for (size_t at = 0; at < text.size();) {
        const size_t bytes = character_bytes(text, at);
        if (bytes == 0) return false;
        at += bytes;
    }
    return true;
}

JsonWriter& JsonWriter::open(char bracket) {
    separate();
    out_ += bracket;
    brackets_ += bracket == '{' ? '}' : ']';
    comma_ = false;
    return *this;
}

JsonWriter& JsonWriter::close() {
    check(!brackets_.empty(), "JsonWriter::close() has something to close");
    out_ += brackets_.back();
    brackets_.pop_back();
    comma_ = true;
    return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
    separate();
    out_ += '"';
    append_escaped(out_, name);
    out_ += "\":";
    after_key_ = true;
    return *this;
}

JsonWriter& JsonWriter::text(std::string_view value) {
    separate();
    out_ += '"';
    append_escaped(out_, value);
    out_ += '"';
    return *this;
}

JsonWriter& JsonWriter::boolean(bool value) {
    separate();
    out_ += value ? "true" : "false";
    return *this;
}

JsonWriter& JsonWriter::null() {
    separate();
    out_ += "null";
    return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
    separate();
    out_ += json;
    return *this;
}

void JsonWriter::separate() {
    if (after_key_)
        after_key_ = false;
    else if (comma_)
        out_ += ',';
    comma_ = true;
}

}  // namespace cadans::serve
