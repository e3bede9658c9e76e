// A string that remembers, byte for byte, whether the template wrote it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cadans::text::jinja {

/// Bytes and their authorship. Every operation keeps each byte's mark. Thread rule: a value.
class MarkedText {
  public:
    /// A stretch of one author: up to byte `end`.
    struct Run {
        size_t end;
        bool trusted;
    };

    MarkedText() = default;
    MarkedText(std::string bytes, bool trusted);

    const std::string& bytes() const noexcept { return bytes_; }
    size_t size() const noexcept { return bytes_.size(); }
    bool empty() const noexcept { return bytes_.empty(); }
    const std::vector<Run>& runs() const noexcept { return runs_; }

    void append(const MarkedText& other) { append(other, 0, other.size()); }
    void append(const MarkedText& other, size_t begin, size_t end);
    void append(std::string_view bytes, bool trusted);

    /// The bytes [begin, end) with their marks.
    MarkedText slice(size_t begin, size_t end) const;

    /// Whether the byte at `at` is the template's. Cost: logarithmic in the number of runs.
    bool trusted_at(size_t at) const noexcept;

  private:
    std::string bytes_;
    std::vector<Run> runs_;  // ascending, neighbours differ, none empty
};

}  // namespace cadans::text::jinja
