// Writing to stderr, which never fails: who closed it does not want to know.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace cadans::apps {

/// Formats and writes to stderr. Unlike fmt::print it does not throw where stderr is a closed pipe or a full disk.
/// Thread-safe.
template <class... Parts>
void to_stderr(fmt::format_string<Parts...> form, Parts&&... parts) {
    const std::string text = fmt::format(form, std::forward<Parts>(parts)...);
    (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace cadans::apps
