// Sets of Unicode characters, and the bytes that spell them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/nfa.h"

namespace cadans::grammar {

inline constexpr uint32_t kCodePointMax = 0x10FFFF;

struct CodePointRange {
    uint32_t lo, hi;
    bool operator==(const CodePointRange&) const = default;
};

/// Code points, as ascending ranges that do not touch. Thread rule: a value
class CodePointSet {
  public:
    CodePointSet() = default;
    CodePointSet(std::initializer_list<CodePointRange> ranges) : ranges_(ranges) { tidy(); }

    /// tidy() is due before the set is used; so it is after gather().
    void add(uint32_t lo, uint32_t hi) {
        ranges_.push_back({lo, hi});
        tidy_at_times();
    }
    void gather(const CodePointSet& other) {
        ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
        tidy_at_times();
    }
    void add(const CodePointSet& other) {
        ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
        tidy();
    }
    void tidy();
    CodePointSet complement() const;              ///< within 0 … 0x10FFFF; of a tidy set
    bool meets(const CodePointSet& other) const;  ///< a character is in both; of tidy sets
    const std::vector<CodePointRange>& ranges() const noexcept { return ranges_; }
    bool operator==(const CodePointSet& other) const { return ranges_ == other.ranges_; }

  private:
    /// Whenever it has doubled: adding costs a logarithm, whatever is added.
    void tidy_at_times() {
        if (ranges_.size() <= full_) return;
        tidy();
        full_ = std::max(kFew, 2 * ranges_.size());
    }

    static constexpr size_t kFew = 64;
    std::vector<CodePointRange> ranges_;
    size_t full_ = kFew;
};

/// Edges from `from` to `to` over the UTF-8 of these characters; surrogates, which have none, are left out.
void add_utf8(Nfa& nfa, Nfa::State from, CodePointRange range, Nfa::State to);

/// The UTF-8 of one character; nothing for a surrogate or beyond Unicode.
std::string utf8(uint32_t code_point);

/// Takes the next character off the front of a text; -1 when it is no valid UTF-8, with one byte taken.
int64_t take_character(std::string_view& text);

}  // namespace cadans::grammar
