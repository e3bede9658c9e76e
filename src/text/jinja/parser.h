// Reads a template's source into its tree.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/jinja/ast.h"

namespace cadans::text::jinja {

/// Errors: bad_input with the line; unsupported for statements that would reach outside (include, import, extends) or
/// are not known; too_large when nested deeper than `depth_max`.
Result<Body> parse(std::string_view source, uint32_t depth_max);

}  // namespace cadans::text::jinja
