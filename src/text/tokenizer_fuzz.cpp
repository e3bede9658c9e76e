#include <cstddef>
#include <cstdint>

#include "text/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    cadans::text::check_round_trip({reinterpret_cast<const char*>(data), size});
    return 0;
}
