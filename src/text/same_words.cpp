#include "text/same_words.h"

#include <fmt/format.h>

namespace cadans::text {

std::optional<std::string> first_difference(const Vocabulary& one, const Vocabulary& other) {
    if (one.size() != other.size()) return fmt::format("it has {} tokens, the other {}", one.size(), other.size());
    for (uint32_t i = 0; i < one.size(); i++) {
        const TokenId id{i};
        if (one.spelling(id) != other.spelling(id))
            return fmt::format("its token {} is \"{}\", that of the other \"{}\"", i, one.spelling(id),
                               other.spelling(id));
        if (one.is_control(id) != other.is_control(id))
            return fmt::format("its token {}, \"{}\", is {} control token, unlike that of the other", i,
                               one.spelling(id), one.is_control(id) ? "a" : "no");
    }
    return std::nullopt;
}

}  // namespace cadans::text
