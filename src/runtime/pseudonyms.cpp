#include "runtime/pseudonyms.h"

#include <bit>

namespace cadans::runtime {
namespace {

void round(uint64_t& a, uint64_t& b, uint64_t& c, uint64_t& d) noexcept {
    a += b, b = std::rotl(b, 13) ^ a, a = std::rotl(a, 32);
    c += d, d = std::rotl(d, 16) ^ c;
    a += d, d = std::rotl(d, 21) ^ a;
    c += b, b = std::rotl(b, 17) ^ c, c = std::rotl(c, 32);
}

}  // namespace

uint64_t Pseudonyms::hash(uint64_t first, uint64_t second) const noexcept {
    uint64_t a = key_[0] ^ 0x736f6d6570736575u, b = key_[1] ^ 0x646f72616e646f6du;
    uint64_t c = key_[0] ^ 0x6c7967656e657261u, d = key_[1] ^ 0x7465646279746573u;
    constexpr uint64_t kLength = uint64_t{16} << 56;  // the message has two words, and its length closes it
    for (const uint64_t word : {first, second, kLength}) {
        d ^= word;
        round(a, b, c, d);
        round(a, b, c, d);
        a ^= word;
    }
    c ^= 0xff;
    for (int i = 0; i < 4; i++) round(a, b, c, d);
    return a ^ b ^ c ^ d;
}

}  // namespace cadans::runtime
