// A cost table with all that it is true for, as it is kept on disk and handed from `bench --fit` to `simulate --fit`.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "engine/cost_fit.h"

namespace cadans::engine {

/// When any of these changes, the table is measured again.
struct CostKey {
    std::string model;        ///< its name; only for people
    std::string fingerprint;  ///< of the model's tensors: names, shapes, types
    std::string cpu;          ///< the processor's name
    uint32_t threads = 0;
    std::string isa;
    std::string build;  ///< of this program
    std::string kv;     ///< what keys and values are kept as

    /// The name says which model, the rest must be the same.
    bool covers(const CostKey& other) const {
        return fingerprint == other.fingerprint && cpu == other.cpu && threads == other.threads && isa == other.isa &&
               build == other.build && kv == other.kv;
    }
};

struct CostTable {
    CostKey key;
    CostFit fit;
    uint64_t kv_token_bytes = 0;  ///< keys and values of one token; 0: not told
    uint32_t layers = 0;          ///< that have them; 0: not told
};

/// The processor's name as its maker wrote it, or "unknown".
std::string cpu_name();

/// One JSON object, with a newline at its end.
std::string to_json(const CostTable& table);

/// Errors: bad_input, naming the field and what was expected: no JSON, another kind of file, a coefficient that is
/// missing, negative or over the bounds of StepCost. Unknown fields are ignored.
Result<CostTable> cost_table_from_json(const std::string& text);

}  // namespace cadans::engine
