// How the doors are set: addresses, names, key, limits and times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace cadans::serve {

/// Limits on what a client may send and how long it may take. Each has a test that goes over it.
struct HttpLimits {
    size_t target_bytes = 8 << 10;       ///< 414 beyond
    size_t head_bytes = 32 << 10;        ///< request line and all header fields: 431 beyond
    size_t head_fields = 100;            ///< 431 beyond
    size_t body_bytes = 16 << 20;        ///< 413 beyond
    size_t connections = 2048;           ///< 503 beyond
    Nanos idle = 75 * kNanosPerSecond;   ///< between requests
    Nanos head = 10 * kNanosPerSecond;   ///< from the first byte of a request to the end of its header: 408
    Nanos body = 60 * kNanosPerSecond;   ///< for the whole body: 408
    Nanos write = 30 * kNanosPerSecond;  ///< without one byte taken by the client: the request is cancelled
    Nanos drain = 30 * kNanosPerSecond;  ///< what running requests get after the first signal
};

/// What is kept of finished requests on disk.
struct HistoryOptions {
    std::string path;  ///< of the file; empty: nothing is kept on disk
    uint64_t most_bytes = uint64_t{256} << 20;
    uint32_t most_days = 30;
    bool prompts = false;  ///< keep the text of prompts too
};

struct ServerOptions {
    std::string host = "127.0.0.1";
    uint16_t port = 11435;                      ///< 0: one that is free; Server::port() tells which
    std::vector<std::string> host_names;        ///< further names that the Host field may carry
    std::vector<std::string> allowed_origins;   ///< exact, as "http://example.test:3000"; our own is always allowed
    std::string api_key;                        ///< empty: none is asked for
    Nanos comment_every = 5 * kNanosPerSecond;  ///< keep-alive comments in silent streams; 0: none
    uint32_t queue_places = 64;                 ///< --queue, for messages; the inbox enforces it
    size_t remembered_requests = 4096;          ///< finished requests kept in memory
    HistoryOptions history;                     ///< and on disk
    std::string otlp_endpoint;                  ///< a collector's address for spans; empty: none are sent
    std::string version;                        ///< of this program, to show it
    bool handle_signals = true;                 ///< SIGINT and SIGTERM drain, a second one stops
    HttpLimits limits;
};

}  // namespace cadans::serve
