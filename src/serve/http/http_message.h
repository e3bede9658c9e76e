// A request as it came in and a reply as it goes out, free of any HTTP library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"

namespace cadans::serve {

using HeaderField = std::pair<std::string, std::string>;

struct HttpRequest {
    std::string method;
    std::string path;                 ///< percent-decoded, without query
    std::string query;                ///< as sent, without '?'
    std::vector<HeaderField> fields;  ///< names in lower case, in order
    std::string body;
    Nanos accepted = 0;  ///< when the header was complete
    std::string id;      ///< ours: goes out as x-request-id

    /// The first field of this (lower-case) name; empty when absent.
    std::string_view field(std::string_view name) const noexcept {
        for (const HeaderField& each : fields)
            if (each.first == name) return each.second;
        return {};
    }
    bool has_field(std::string_view name) const noexcept {
        for (const HeaderField& each : fields)
            if (each.first == name) return true;
        return false;
    }
};

struct HttpReply {
    int status = 200;
    std::string content_type = "application/json";
    std::string body;
    std::vector<HeaderField> fields = {};
};

}  // namespace cadans::serve
