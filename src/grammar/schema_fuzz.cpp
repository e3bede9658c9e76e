#include <cstddef>
#include <cstdint>

#include "grammar/fuzz_walk.h"
#include "grammar/schema.h"

/// A schema's text: refused in words, or a grammar that can be walked.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    cadans::grammar::walk_a_little(cadans::grammar::schema_text_grammar({reinterpret_cast<const char*>(data), size}));
    return 0;
}
