// What a person wants to know of a model file before running it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/memory.h"
#include "model/spec.h"

namespace cadans::model {

/// One metadata key; long texts and arrays are cut.
struct MetadataLine {
    std::string key;
    std::string type;  ///< "u32", "array of string", …
    std::string value;
};

/// All tensors of one type together.
struct TensorTypeLine {
    std::string type;
    uint64_t tensors = 0;
    uint64_t bytes = 0;
    bool runnable = false;
};

/// Filled as far as reading came: a file that is refused early has a reason and little else.
struct InspectReport {
    std::string path;
    uint64_t size_bytes = 0;
    uint32_t version = 0;
    std::vector<MetadataLine> metadata;
    std::vector<TensorTypeLine> tensor_types;
    std::optional<ModelSpec> spec;
    std::optional<MemoryEstimate> memory;
    AvailableMemory available;
    std::vector<std::string> notes;  ///< what would work less well, such as chat without a template
    std::optional<Error> obstacle;   ///< what stops it from running; absent if it would run

    /// 0 if it would run, 1 if not, 70 if the child that read the file died.
    int exit_code() const noexcept;
};

/// Reads the file, first in a child (safe_open.h), and says what is in it. Never fails: what is wrong is
/// the report's obstacle. No tensor byte is read.
InspectReport inspect(const std::string& path);

nlohmann::ordered_json to_json(const InspectReport& report);
std::string to_text(const InspectReport& report);

}  // namespace cadans::model
