// The page that the server shows to people, as bytes inside the program.
#pragma once

#include <string_view>

namespace cadans::page {

/// The whole page: one HTML document that asks for nothing else. Thread-safe.
std::string_view html() noexcept;

/// The same, as gzip packs it.
std::string_view html_gzip() noexcept;

/// The value of Content-Security-Policy under which a browser runs exactly this document, and nothing that
/// somebody slips into it.
std::string_view policy() noexcept;

}  // namespace cadans::page
