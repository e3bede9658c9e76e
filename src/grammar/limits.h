// What a grammar may be: sizes at which a source is refused instead of compiled, and the bytes that there are.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>

namespace cadans::grammar {

/// Of them texts are made.
using Alphabet = std::bitset<256>;

/// Every source is a stranger's text, so each of its costs has an end. Bounds of what is *written* (digits, string
/// lengths) make answers shorter than they could be, never wrong.
struct Limits {
    size_t source_bytes = 256 * 1024;        ///< of a schema, pattern or grammar
    uint32_t depth = 64;                     ///< of brackets, groups, nested schemas
    uint32_t rules = 20'000;                 ///< of the compiled grammar
    uint32_t states = 200'000;               ///< of all rules together, also while compiling
    uint32_t edges = 800'000;                ///< likewise
    uint32_t work = 200'000;                 ///< facts read while branches of schemas are compared, all of one answer's
    uint32_t pattern_states = 4'000;         ///< of one pattern's deterministic automaton
    uint32_t alternatives = 1'000;           ///< into which anyOf and oneOf of one place multiply
    uint32_t properties = 2'000;             ///< of one object
    uint32_t string_characters_max = 4'096;  ///< a longer maxLength is kept by writing no more than these
    uint32_t array_items_max = 4'096;        ///< a larger maxItems is kept likewise
    Alphabet alphabet = ~Alphabet();         ///< texts with other bytes cannot be written, and are left out
};

}  // namespace cadans::grammar
