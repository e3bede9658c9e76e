#include "text/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "text/utf8.h"

namespace cadans::text::jinja {
namespace {

bool is_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool begins_name(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (static_cast<unsigned char>(c) & 0x80) != 0;
}

std::string unix_newlines(std::string_view source) {
    std::string out;
    out.reserve(source.size());
    for (size_t i = 0; i < source.size(); i++) {
        if (source[i] != '\r') {
            out.push_back(source[i]);
            continue;
        }
        out.push_back('\n');
        if (i + 1 < source.size() && source[i + 1] == '\n') i++;
    }
    return out;
}

class Lexer {
  public:
    explicit Lexer(std::string_view source) : source_(unix_newlines(source)) {
        if (source_.ends_with('\n')) source_.pop_back();
    }

    Result<std::vector<Token>> run() {
        while (at_ < source_.size() && !failed_) lex_data();
        if (failed_) return bad_input(std::move(message_), fmt::format("line {}", line_));
        add(Token::Kind::end);
        return std::move(tokens_);
    }

  private:
    std::string_view rest() const { return std::string_view(source_).substr(at_); }

    void fail(std::string message) {
        failed_ = true;
        message_ = std::move(message);
    }

    void advance(size_t bytes) {
        line_ += static_cast<uint32_t>(std::count(source_.begin() + static_cast<ptrdiff_t>(at_),
                                                  source_.begin() + static_cast<ptrdiff_t>(at_ + bytes), '\n'));
        at_ += bytes;
    }

    Token& add(Token::Kind kind, std::string text = {}) {
        tokens_.push_back({kind, std::move(text), 0, 0, line_});
        return tokens_.back();
    }

    /// Text up to the next tag, and that tag.
    void lex_data() {
        size_t tag = at_;
        for (;; tag++) {
            tag = source_.find('{', tag);
            if (tag == source_.npos || tag + 1 == source_.size()) {
                tag = source_.npos;
                break;
            }
            if (const char c = source_[tag + 1]; c == '{' || c == '%' || c == '#') break;
        }
        if (tag == source_.npos) {
            add(Token::Kind::data, std::string(rest()));
            advance(source_.size() - at_);
            return;
        }
        const char kind = source_[tag + 1];
        const char sign =
            tag + 2 < source_.size() && (source_[tag + 2] == '-' || source_[tag + 2] == '+') ? source_[tag + 2] : ' ';
        std::string_view data = rest().substr(0, tag - at_);
        if (sign == '-') {
            while (!data.empty() && is_space(data.back())) data.remove_suffix(1);
        } else if (sign != '+' && kind != '{') {
            data = without_indentation(data);
        }
        if (!data.empty()) add(Token::Kind::data, std::string(data));
        advance(tag + (sign == ' ' ? 2 : 3) - at_);
        if (kind == '#')
            lex_comment();
        else if (kind == '%' && lex_raw())
            return;
        else
            lex_inside(kind);
    }

    /// lstrip_blocks: white space goes when nothing else is between the line's begin and the tag.
    std::string_view without_indentation(std::string_view data) const {
        const size_t newline = data.rfind('\n');
        const size_t line_begin = newline == data.npos ? 0 : newline + 1;
        if (line_begin == 0 && !line_starts_) return data;
        const std::string_view indentation = data.substr(line_begin);
        return std::all_of(indentation.begin(), indentation.end(), is_space) ? data.substr(0, line_begin) : data;
    }

    /// After a tag's end: trim_blocks for statements and comments, "-" for all.
    void after_tag(bool strip, bool trim) {
        const size_t begin = at_;
        size_t n = 0;
        if (strip) {
            while (n < rest().size() && is_space(rest()[n])) n++;
        } else if (trim && rest().starts_with('\n')) {
            n = 1;
        }
        advance(n);
        line_starts_ = at_ > begin && source_[at_ - 1] == '\n';
    }

    void lex_comment() {
        const size_t end = rest().find("#}");
        if (end == std::string_view::npos) return fail("a comment has no end");
        const char sign = end > 0 ? rest()[end - 1] : ' ';
        advance(end + 2);
        after_tag(sign == '-', sign != '+');
    }

    /// {% raw %}…{% endraw %}: true when it was one.
    bool lex_raw() {
        size_t n = 0;
        if (!skip_word(at_, n, "raw")) return false;
        const bool strip_begin = source_[n - 3] == '-';
        advance(n - at_);
        after_tag(strip_begin, source_[n - 3] != '+');
        for (size_t tag = at_; (tag = source_.find("{%", tag)) != source_.npos; tag += 2) {
            const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
            if (!skip_word(tag + (sign == '-' || sign == '+' ? 3 : 2), n, "endraw")) continue;
            std::string_view data = rest().substr(0, tag - at_);
            if (sign == '-') {
                while (!data.empty() && is_space(data.back())) data.remove_suffix(1);
            } else if (sign != '+') {
                data = without_indentation(data);
            }
            if (!data.empty()) add(Token::Kind::data, std::string(data));
            advance(n - at_);
            after_tag(source_[n - 3] == '-', source_[n - 3] != '+');
            return true;
        }
        fail("a raw block has no end");
        return true;
    }

    /// Whether `word` and the end of the tag follow at `from`; `end` is then the place after it.
    bool skip_word(size_t from, size_t& end, std::string_view word) const {
        while (from < source_.size() && is_space(source_[from])) from++;
        if (source_.compare(from, word.size(), word) != 0) return false;
        from += word.size();
        while (from < source_.size() && is_space(source_[from])) from++;
        if (from < source_.size() && (source_[from] == '-' || source_[from] == '+')) from++;
        end = from + 2;
        return source_.compare(from, 2, "%}") == 0;
    }

    void lex_inside(char kind) {
        const bool print = kind == '{';
        add(print ? Token::Kind::print_begin : Token::Kind::block_begin);
        const std::string_view close = print ? "}}" : "%}";
        std::vector<char> open;  // brackets: "}}" may also close two dicts
        while (!failed_) {
            while (at_ < source_.size() && is_space(source_[at_])) advance(1);
            if (at_ >= source_.size()) return fail(print ? "an expression has no end" : "a statement has no end");
            if (open.empty()) {
                const char sign = rest()[0];
                const bool signed_end = (sign == '-' || (sign == '+' && !print)) && rest().substr(1).starts_with(close);
                if (signed_end || rest().starts_with(close)) {
                    add(print ? Token::Kind::print_end : Token::Kind::block_end);
                    advance(signed_end ? 3 : 2);
                    return after_tag(signed_end && sign == '-', !print && !(signed_end && sign == '+'));
                }
            }
            lex_word(open);
        }
    }

    void lex_word(std::vector<char>& open) {
        const char c = rest()[0];
        if (begins_name(c)) {
            size_t n = 1;
            while (n < rest().size() && (begins_name(rest()[n]) || is_digit(rest()[n]))) n++;
            add(Token::Kind::name, std::string(rest().substr(0, n)));
            advance(n);
        } else if (is_digit(c)) {
            lex_number();
        } else if (c == '\'' || c == '"') {
            lex_string(c);
        } else {
            lex_symbol(open);
        }
    }

    void lex_number() {
        std::string digits;
        size_t n = 0;
        bool real = false;
        const auto take = [&] {
            while (n < rest().size() && (is_digit(rest()[n]) || rest()[n] == '_')) {
                if (rest()[n] != '_') digits.push_back(rest()[n]);
                n++;
            }
        };
        take();
        if (n + 1 < rest().size() && rest()[n] == '.' && is_digit(rest()[n + 1])) {
            real = true;
            digits.push_back('.');
            n++;
            take();
        }
        if (n < rest().size() && (rest()[n] == 'e' || rest()[n] == 'E')) {
            size_t m = n + 1;
            if (m < rest().size() && (rest()[m] == '+' || rest()[m] == '-')) m++;
            if (m < rest().size() && is_digit(rest()[m])) {
                real = true;
                digits.append("e").append(rest().substr(n + 1, m - n - 1));
                n = m;
                take();
            }
        }
        Token& token = add(real ? Token::Kind::real : Token::Kind::integer);
        const char* end = digits.data() + digits.size();
        if (digits.find('+') != digits.npos) digits.erase(digits.find('+'), 1), end = digits.data() + digits.size();
        const std::from_chars_result read =
            real ? std::from_chars(digits.data(), end, token.real) : std::from_chars(digits.data(), end, token.integer);
        if (read.ec != std::errc() || read.ptr != end) return fail("a number is out of range");
        advance(n);
    }

    void lex_string(char quote) {
        std::string out;
        size_t n = 1;
        while (n < rest().size() && rest()[n] != quote) {
            if (rest()[n] == '\\' && n + 1 < rest().size())
                n += unescape(rest().substr(n), out);
            else
                out.push_back(rest()[n++]);
        }
        if (n >= rest().size()) return fail("a string has no end");
        add(Token::Kind::string, std::move(out));
        advance(n + 1);
    }

    /// One backslash sequence as Python reads it; returns its length.
    static size_t unescape(std::string_view text, std::string& out) {
        constexpr std::string_view kFrom = "abfnrtv\\'\"", kTo = "\a\b\f\n\r\t\v\\'\"";
        const char c = text[1];
        if (const size_t i = kFrom.find(c); i != kFrom.npos) {
            out.push_back(kTo[i]);
            return 2;
        }
        if (c == '\n') return 2;
        const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
        uint32_t code_point = 0;
        if (digits > 0 && text.size() >= 2 + digits) {
            const char* end = text.data() + 2 + digits;
            const auto read = std::from_chars(text.data() + 2, end, code_point, 16);
            const bool surrogate = code_point >= 0xD800 && code_point < 0xE000;
            if (read.ec == std::errc() && read.ptr == end && code_point < 0x110000 && !surrogate) {
                append_utf8(out, code_point);
                return 2 + digits;
            }
        }
        if (c >= '0' && c <= '7') {
            size_t n = 1;
            while (n < 4 && n < text.size() && text[n] >= '0' && text[n] <= '7')
                code_point = code_point * 8 + static_cast<uint32_t>(text[n++] - '0');
            append_utf8(out, code_point);
            return n;
        }
        out.push_back('\\');
        return 1;
    }

    void lex_symbol(std::vector<char>& open) {
        constexpr std::array<std::string_view, 25> kSymbols = {"**", "//", "==", "!=", "<=", ">=", "<", ">", "=",
                                                               "+",  "-",  "*",  "/",  "%",  "~",  "|", ".", ",",
                                                               ":",  "(",  ")",  "[",  "]",  "{",  "}"};
        for (const std::string_view symbol : kSymbols) {
            if (!rest().starts_with(symbol)) continue;
            const char c = symbol[0];
            if (c == '(' || c == '[' || c == '{') open.push_back(c);
            if (c == ')' || c == ']' || c == '}') {
                const char opener = c == ')' ? '(' : c == ']' ? '[' : '{';
                if (open.empty() || open.back() != opener) return fail(fmt::format("unexpected \"{}\"", symbol));
                open.pop_back();
            }
            add(Token::Kind::symbol, std::string(symbol));
            return advance(symbol.size());
        }
        fail(fmt::format("unexpected character \"{}\"", rest().substr(0, utf8_at(rest(), 0).bytes)));
    }

    std::string source_;
    size_t at_ = 0;
    uint32_t line_ = 1;
    bool line_starts_ = true;  // the text that follows begins a line
    bool failed_ = false;
    std::string message_;
    std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> lex(std::string_view source) { return Lexer(source).run(); }

}  // namespace cadans::text::jinja
