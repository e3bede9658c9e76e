// How a server wants to be asked, found out by asking it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "client/call.h"

namespace cadans::load {

enum class Dialect : uint8_t { openai, ollama };

constexpr const char* name(Dialect dialect) noexcept { return dialect == Dialect::openai ? "openai" : "ollama"; }

/// A server as its clients see it.
struct Peer {
    client::Url url;
    std::string address;  ///< as it was given
    std::string api_key;
    Dialect dialect = Dialect::openai;
    std::string model;
    double tokens_per_word = 1.3;  ///< of our words, by its own count
};

struct Wish {
    std::string dialect = {};  ///< openai, ollama; empty: whichever it speaks, OpenAI's first
    std::string model = {};    ///< empty: the first that it names
    std::string api_key = {};
};

/// Asks for its models, then twice for one token, to learn how many tokens our words are. Errors: nobody there, neither
/// dialect spoken, no model, an answer that is none.
Result<Peer> meet(const std::string& address, const Wish& wish);

/// A request for a streamed answer of `output` tokens.
client::Request request_for(const Peer& peer, const std::string& prompt, uint32_t output);

}  // namespace cadans::load
