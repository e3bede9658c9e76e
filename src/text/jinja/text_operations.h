// Python's string operations on marked text: every byte keeps its author.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace cadans::text::jinja {

class Machine;

/// The byte place of each character, and the size at the end.
std::vector<size_t> character_places(std::string_view text);

/// What Python's str.isspace() holds for one character.
bool is_python_space(uint32_t code_point) noexcept;

/// `title` is Python's str.title(), `word_title` the filter of that name.
enum class Case { upper, lower, title, word_title, capital };
MarkedText with_case(const MarkedText& text, Case wanted);

/// Without white space, or characters of `set` where given, at the chosen ends.
MarkedText stripped(const MarkedText& text, const MarkedText* set, bool left, bool right);

/// The machine is charged for each piece; when it fails, the pieces mean nothing.
/// The pieces between `separator` (runs of white space where null), at most `most` cuts unless negative.
std::vector<MarkedText> split(Machine& machine, const MarkedText& text, const MarkedText* separator, int64_t most);
std::vector<MarkedText> split_from_right(Machine& machine, const MarkedText& text, const MarkedText* separator,
                                         int64_t most);
std::vector<MarkedText> split_lines(Machine& machine, const MarkedText& text, bool keep_ends);

/// Every `from` by `to`, at most `most` unless negative. Fails the machine when that grows too large.
MarkedText replaced(Machine& machine, const MarkedText& text, const MarkedText& from, const MarkedText& to,
                    int64_t most);

MarkedText html_escaped(const MarkedText& text);

/// "…%s…" % value.
Value format_percent(Machine& machine, const MarkedText& format, const Value& value);

/// "{} {name}".format(…), without format specifications.
Value format_braces(Machine& machine, const MarkedText& format, const Arguments& arguments);

}  // namespace cadans::text::jinja
