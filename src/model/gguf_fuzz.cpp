// libFuzzer: bytes as they come, and bytes that were a file whose fields were changed.
#include <cstring>

#include "model/testing/gguf_mutator.h"
#include "model/testing/read_all.h"
#include "model/testing/tiny_model.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using cadans::model::testing::Bytes;

cadans::ThreadPool& pool() {
    static cadans::ThreadPool one(1);
    return one;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    cadans::Error why;
    (void)cadans::model::testing::read_all({reinterpret_cast<const std::byte*>(data), size}, pool(), why);
    return 0;
}

/// Half of the time libFuzzer's own change; else, where the bytes are a file, a change that knows its fields,
/// and where they are none, a fresh small file.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
    using namespace cadans::model;
    if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
    const Bytes bytes(reinterpret_cast<const std::byte*>(data), reinterpret_cast<const std::byte*>(data) + size);
    const auto file = GgufFile::parse(bytes, "fuzz");
    testing::GgufMutator mutator(seed);
    const Bytes changed =
        file ? mutator.structured(testing::editable(*file)) : testing::tiny_model({.layers = 1}).bytes();
    if (changed.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
    std::memcpy(data, changed.data(), changed.size());
    return changed.size();
}
