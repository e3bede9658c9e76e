#include "text/marks.h"

#include <algorithm>

namespace cadans::text {

size_t possible_beginning(std::string_view text, std::string_view mark) noexcept {
    for (size_t n = std::min(text.size(), mark.size() - 1); n > 0; n--)
        if (text.ends_with(mark.substr(0, n))) return n;
    return 0;
}

size_t trailing_spaces(std::string_view text) noexcept {
    const size_t last = text.find_last_not_of(kMarkSpaces);
    return last == text.npos ? text.size() : text.size() - last - 1;
}

}  // namespace cadans::text
