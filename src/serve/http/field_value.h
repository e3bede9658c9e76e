// What the value of a header field says.
#pragma once

#include <string_view>

namespace cadans::serve {

/// Without blanks and tabs at its ends.
std::string_view trimmed(std::string_view text);

/// Accept-Encoding: whether gzip is among the codings that may be sent, named, and not with weight 0.
bool takes_gzip(std::string_view codings);

/// If-None-Match: whether a list of tags, each strong or weak, names this one; "*" names all.
bool names_tag(std::string_view list, std::string_view tag);

}  // namespace cadans::serve
