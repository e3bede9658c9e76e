// Who may come in: decided before any route is looked at, so that no route can be forgotten.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "serve/http/http_message.h"
#include "serve/options.h"

namespace cadans::serve {

/// Compares in a time that depends on the lengths only.
bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept;

/// The name in a Host field, without port, brackets kept off IPv6; empty when it is malformed.
std::string host_name_of(std::string_view host);

/// Immutable and thread-safe. Borrows the options.
class Gate {
  public:
    explicit Gate(const ServerOptions& options) : options_(options) {}

    /// The refusal, or nothing when the request may go on. In order: Host (a foreign name is how a web page reaches
    /// us by DNS rebinding), Origin, preflight, API key (not for the page itself), and for calls that change or cost
    /// something a JSON content type.
    ///
    /// local_address  the address on our side of the connection
    std::optional<HttpReply> refuse(const HttpRequest& request, std::string_view local_address) const;

    /// Fields that a reply to an allowed foreign origin needs.
    void add_origin_fields(const HttpRequest& request, HttpReply& reply) const;

  private:
    bool host_allowed(const HttpRequest& request, std::string_view local_address) const;
    bool origin_listed(std::string_view origin) const;
    bool key_given(const HttpRequest& request) const;

    const ServerOptions& options_;
};

}  // namespace cadans::serve
