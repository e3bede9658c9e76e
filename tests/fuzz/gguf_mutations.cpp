// Reads N damaged GGUF files, half of them damaged blindly and half by field, and counts how far each came.
//
//     gguf_mutations [N=10000] [FIRST_SEED=0]
//
// Ends with 0 when every file was refused in words or read; a crash or a sanitizer's report ends it otherwise,
// and the last "seed" line on stderr says which seed did it.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>

#include "model/testing/gguf_mutator.h"
#include "model/testing/read_all.h"
#include "model/testing/tiny_model.h"

namespace {

using namespace cadans;
using namespace cadans::model::testing;
using model::TensorType;

constexpr size_t kHeadBytes = 4096;
constexpr unsigned kSecondsPerFile = 10;  // a file that takes longer hangs: the alarm ends the program

std::vector<GgufWriter> seeds() {
    std::vector<GgufWriter> files;
    for (const char* family : {"llama", "qwen2", "qwen3", "gemma3"})
        for (const TensorType type :
             {TensorType::f32, TensorType::f16, TensorType::bf16, TensorType::q8_0, TensorType::q4_0})
            files.push_back(tiny_model({.family = family,
                                        .type = type,
                                        .tied = type != TensorType::q8_0,
                                        .rope_factors = std::string_view(family) == "llama",
                                        .layers = 1}));
    return files;
}

}  // namespace

int main(int argc, char** argv) {
    const uint64_t n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000;
    const uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
    ThreadPool pool(1);
    const auto files = seeds();
    std::array<uint64_t, 5> reached{};
    uint64_t wordless = 0;
    for (uint64_t seed = first; seed < first + n; ++seed) {
        if (seed % 500 == 0) fmt::print(stderr, "seed {}\n", seed);
        const GgufWriter& file = files[seed / 2 % files.size()];
        GgufMutator mutator(seed);
        const Bytes bytes = seed % 2 == 0 ? mutator.raw(file.bytes(), kHeadBytes) : mutator.structured(file);
        ::alarm(kSecondsPerFile);
        Error why;
        const Reached at = read_all(bytes, pool, why);
        ::alarm(0);
        ++reached[static_cast<size_t>(at)];
        if (at == Reached::refused && (why.message.empty() || why.where.find("at byte ") == std::string::npos))
            ++wordless;
    }
    fmt::print(
        "{} damaged GGUF files: {} refused by the reader, {} by the model's numbers, {} by its vocabulary, {} by its "
        "weights or memory, {} loaded; {} refusals without field and offset\n",
        n, reached[0], reached[1], reached[2], reached[3], reached[4], wordless);
    return wordless == 0 ? 0 : 1;
}
