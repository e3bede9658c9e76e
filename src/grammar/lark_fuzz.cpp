#include <cstddef>
#include <cstdint>

#include "grammar/fuzz_walk.h"
#include "grammar/lark.h"

/// A Lark grammar: refused in words, or a grammar that can be walked.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    cadans::grammar::walk_a_little(cadans::grammar::lark_grammar({reinterpret_cast<const char*>(data), size}));
    return 0;
}
