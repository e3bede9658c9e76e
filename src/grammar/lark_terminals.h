// The terminals of Lark's common library.
#pragma once

#include <optional>
#include <string_view>

namespace cadans::grammar {

/// The pattern of `common.NAME`; nothing for a name that is not there.
std::optional<std::string_view> lark_common(std::string_view name) noexcept;

}  // namespace cadans::grammar
