// A kept record read back into the figures that its sentences are made of.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "metrics/explain.h"

namespace cadans::serve {

struct ReadRecord {
    std::string id, model;
    metrics::Explained explained;  ///< without the cost of its model
};

/// `json` is what write_cadans() wrote, now or in an earlier version: what is missing is 0 or absent. Errors:
/// bad_input, where it is no such record.
Result<ReadRecord> read_record(std::string_view json);

}  // namespace cadans::serve
