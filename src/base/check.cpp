#include "base/check.h"

#include <unistd.h>

#include <cstdio>

namespace cadans {

void check_failed(std::string_view why, const char* file, int line) noexcept {
    std::fprintf(stderr, "cadans: a check failed: %.*s (%s:%d)\n", static_cast<int>(why.size()), why.data(), file,
                 line);
    std::fflush(stderr);
    _exit(70);  // no destructors: other threads still run on the state that is wrong
}

}  // namespace cadans
