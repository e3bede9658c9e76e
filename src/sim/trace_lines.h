// Text as lines and fields, for the readers of traces.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

namespace cadans::sim {

/// More tokens than any prompt or answer has; larger counts are taken for damage.
inline constexpr uint64_t kMostTokens = 1 << 24;

/// Walks the lines that are not empty. The text outlives it; a line ends with LF or CRLF.
class Lines {
  public:
    Lines(std::string name, std::string_view text) : name_(std::move(name)), rest_(text) {}

    /// Steps to the next line; false at the end.
    bool next() {
        while (!rest_.empty()) {
            const size_t end = rest_.find('\n');
            line_ = rest_.substr(0, end);
            rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
            if (line_.ends_with('\r')) line_.remove_suffix(1);
            number_++;
            if (!line_.empty()) return true;
        }
        return false;
    }

    /// Nothing follows the present line.
    bool at_end() const noexcept { return rest_.empty(); }

    std::string_view line() const noexcept { return line_; }
    size_t number() const noexcept { return number_; }
    const std::string& name() const noexcept { return name_; }

  private:
    std::string name_;
    std::string_view rest_, line_;
    size_t number_ = 0;
};

/// The fields of a line without quotes.
inline std::vector<std::string_view> split(std::string_view line) {
    std::vector<std::string_view> fields;
    while (true) {
        const size_t comma = line.find(',');
        fields.push_back(line.substr(0, comma));
        if (comma == std::string_view::npos) return fields;
        line.remove_prefix(comma + 1);
    }
}

/// A whole number of tokens; nothing counts as one. False: it is no such number.
inline bool parse_count(std::string_view text, uint32_t& out) {
    uint64_t value = 0;
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (bad != std::errc() || end != text.data() + text.size() || value > kMostTokens) return false;
    out = value == 0 ? 1 : static_cast<uint32_t>(value);
    return true;
}

/// A finite number of at least 0.
inline bool parse_number(std::string_view text, double& out) {
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), out);
    return bad == std::errc() && end == text.data() + text.size() && out >= 0 && out <= 1e15;
}

}  // namespace cadans::sim
