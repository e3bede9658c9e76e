// A hash of bytes that nobody outside can foresee.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/random.h"

namespace cadans {

/// For tables and names made of a client's text. The standard library's hash has no secret: whoever wrote keys that all
/// hash alike would make each look-up a walk through all of them. Another function in each process. Thread-safe.
struct SecretHash {
    size_t operator()(std::string_view text) const noexcept {
        static const uint64_t secret = fresh_seed();
        uint64_t hash = secret ^ text.size();
        for (; !text.empty(); text.remove_prefix(std::min<size_t>(8, text.size()))) {
            uint64_t part = 0;
            std::memcpy(&part, text.data(), std::min<size_t>(8, text.size()));
            hash = mix64(hash ^ part);
        }
        return hash;
    }
};

}  // namespace cadans
