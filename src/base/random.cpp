#include "base/random.h"

#include <sys/random.h>

#include "base/check.h"

namespace cadans {

uint64_t fresh_seed() noexcept {
    uint64_t seed = 0;
    check(getrandom(&seed, sizeof seed, 0) == sizeof seed, "the kernel gives random bytes");
    return seed;
}

}  // namespace cadans
