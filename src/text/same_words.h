// Whether two vocabularies have the same tokens, so that one model's guesses mean something to the other.
#pragma once

#include <optional>
#include <string>

#include "text/vocabulary.h"

namespace cadans::text {

/// What differs first between `one` and `other`, as a clause about `one`: their number, or a token's text or kind.
/// Nothing where there is no difference. Cost: one pass.
std::optional<std::string> first_difference(const Vocabulary& one, const Vocabulary& other);

}  // namespace cadans::text
