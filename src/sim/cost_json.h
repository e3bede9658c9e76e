// The coefficients of a cost table, wherever a JSON document has them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "sim/machine.h"

namespace cadans::sim {

/// A document whose text came from `where`, discarded where that is no JSON. Errors: bad_input, deeper than anybody
/// writes.
Result<nlohmann::json> parse_document(const std::string& text, const std::string& where, const std::string& expected);

/// Whether fit_of_json() would find coefficients.
bool holds_cost(const nlohmann::json& root);

/// Errors: bad_input naming the coefficient; or that there are none.
Result<Fit> fit_of_json(const nlohmann::json& root, const std::string& where);

}  // namespace cadans::sim
