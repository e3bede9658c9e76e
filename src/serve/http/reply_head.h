// The bytes that go before and around a reply's body.
#pragma once

#include <string>
#include <string_view>

#include "serve/http/http_message.h"

namespace cadans::serve {

void append_field(std::string& out, std::string_view name, std::string_view value);

/// Status line and fields; what says where the body ends, and the empty line, are still to come.
std::string reply_head(const HttpReply& reply, std::string_view id, bool keep);

/// One piece of a chunked body.
std::string chunk(std::string_view bytes);

}  // namespace cadans::serve
