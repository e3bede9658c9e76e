// One HTTP request to a server and what it replies, whole or line by line as it comes.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace cadans::client {

struct Url {
    std::string host;
    uint16_t port = 80;
    std::string path;  ///< what stands before every path that is asked for; without a slash at its end

    std::string authority() const;  ///< as the Host field has it
};

/// "http://host:port/path"; without a scheme http is meant. Errors: unsupported (https: what to do instead), bad_input.
Result<Url> parse_url(std::string_view text);

struct Request {
    std::string method = "GET";
    std::string path;  ///< with its query
    std::string body = {};
    std::vector<std::pair<std::string, std::string>> fields = {};
    Nanos patience = 30 * kNanosPerSecond;  ///< for connecting, and between two pieces of the reply
    std::stop_token stop = {};              ///< ends the call at once, with io
};

struct Reply {
    int status = 0;
    std::string content_type;
    std::string body;  ///< empty where it was given in lines
};

/// Errors: unavailable (nobody listens there), io (the line broke, or nothing came in time). A status is no error.
/// Thread-safe; blocks.
Result<Reply> call(const Url& url, const Request& request);

/// Gives each line of a reply with status 200 to `on_line`, without its end, as soon as it is there; false hangs up,
/// which is no error. Replies with another status are given whole.
Result<Reply> call_lines(const Url& url, const Request& request, const std::function<bool(std::string_view)>& on_line);

}  // namespace cadans::client
