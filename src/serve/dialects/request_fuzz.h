// One function that takes any bytes as a request body, for fuzzers and for the seeded mutator of the tests.
#pragma once

#include <string_view>

#include "serve/dialects/generation_request.h"

namespace cadans::serve {

/// Reads the bytes as the body of each route that generates. What is accepted must keep its promises: checked here.
void fuzz_request_body(std::string_view body, const Catalog& catalog);

}  // namespace cadans::serve
