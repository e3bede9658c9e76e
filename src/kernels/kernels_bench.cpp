// Prints how fast the kernels are: GOP/s per type, instruction set and number of input rows (two operations a product).
//
// usage: kernels_bench [isa|all] [type|all] [rows of the matrix] [inputs]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "kernels/reference/test_data.h"

namespace {

using namespace std::chrono;
namespace kernels = cadans::kernels;

/// The shortest of several runs, in seconds.
template <class F>
double shortest(const F& f) {
    double best = 1e9;
    const auto end = steady_clock::now() + milliseconds(150);
    do {
        const auto start = steady_clock::now();
        f();
        best = std::min(best, duration<double>(steady_clock::now() - start).count());
    } while (steady_clock::now() < end);
    return best;
}

void bench_matmul(const kernels::KernelTable& table, kernels::WeightType type, size_t rows, size_t cols) {
    kernels::test::Numbers numbers(1);
    const auto file = kernels::test::random_weights(type, rows, cols, numbers);
    const double pack_seconds = shortest([&] { kernels::test::Packed(type, file, rows, cols); });
    const kernels::test::Packed w(type, file, rows, cols);
    std::printf("%-7s %-5s", table.name, std::string(kernels::type_info(type).name).c_str());
    for (const size_t n : {1u, 2u, 4u, 8u, 16u, 128u, 512u}) {
        const auto x = numbers.floats(n * cols);
        const bool quantised = kernels::type_info(type).quantised;
        const size_t stride = quantised ? kernels::activation_bytes(cols) : cols * 4;
        kernels::test::Aligned in(n * stride);
        for (size_t r = 0; r < n; ++r) {
            if (quantised)
                table.quantize_row(&x[r * cols], cols,
                                   reinterpret_cast<kernels::ActivationGroup*>(in.data() + r * stride));
            else
                std::memcpy(in.data() + r * stride, &x[r * cols], stride);
        }
        std::vector<float> out(n * rows);
        const double seconds = shortest([&] {
            table.matmul(w.matrix, 0, w.matrix.panels(), {in.data(), stride, n}, out.data(), rows);
        });
        const double products = static_cast<double>(rows) * static_cast<double>(cols) * static_cast<double>(n);
        std::printf(" %8.1f", 2e-9 * products / seconds);
        if (n == 1) std::printf(" (%5.1f GB/s)", 1e-9 * static_cast<double>(w.bytes.size()) / seconds);
    }
    std::printf("   pack %.2f GB/s\n", 1e-9 * static_cast<double>(file.size()) / pack_seconds);
}

void bench_attention(const kernels::KernelTable& table, size_t hd, size_t heads, size_t tokens, size_t n) {
    kernels::test::Numbers numbers(2);
    const size_t n_pages = (tokens + 31) / 32;
    kernels::test::Aligned memory(n_pages * kernels::kv_page_bytes(hd));
    std::vector<const std::byte*> pages;
    for (size_t p = 0; p < n_pages; ++p) pages.push_back(memory.data() + p * kernels::kv_page_bytes(hd));
    const auto k = numbers.floats(hd), v = numbers.floats(hd);
    for (size_t t = 0; t < n_pages * 32; ++t)
        table.kv_store(memory.data() + t / 32 * kernels::kv_page_bytes(hd), t % 32, k.data(), v.data(), hd);
    const auto q = numbers.floats(n * heads * hd);
    std::vector<float> out(q.size());
    kernels::test::Aligned scratch(kernels::attention_scratch_bytes(hd));
    const double seconds = shortest([&] {
        table.attention({hd, heads, 0, 0.1f, 0.0f}, {q.data(), heads * hd, hd, n, tokens - n}, pages.data(),
                        {out.data(), heads * hd, hd}, scratch.data());
    });
    const double keys = static_cast<double>(n) * (static_cast<double>(tokens) - 0.5 * static_cast<double>(n));
    std::printf("%-7s attention hd %3zu heads %zu keys %4zu rows %3zu: %7.1f GFLOP/s\n", table.name, hd, heads, tokens,
                n, 4e-9 * keys * static_cast<double>(heads * hd) / seconds);
}

void bench_rows(const kernels::KernelTable& table) {
    kernels::test::Numbers numbers(3);
    const size_t n = 1536;
    const auto x = numbers.floats(n), y = numbers.floats(n);
    std::vector<float> out(n);
    std::vector<kernels::ActivationGroup> groups(n / 32);
    const auto print = [&](const char* what, double seconds) {
        std::printf("%-7s %-12s %7.2f G elements/s\n", table.name, what, 1e-9 * static_cast<double>(n) / seconds);
    };
    print("quantize", shortest([&] { table.quantize_row(x.data(), n, groups.data()); }));
    print("norm+quant", shortest([&] { table.rms_norm_quantize(x.data(), y.data(), n, 1e-5f, groups.data()); }));
    print("silu_mul", shortest([&] { table.silu_mul(x.data(), y.data(), n, out.data()); }));
    print("gelu_mul", shortest([&] { table.gelu_mul(x.data(), y.data(), n, out.data()); }));
    print("rope norm",
          shortest([&] { table.rope(out.data(), n / 64, 64, 64, x.data(), y.data(), kernels::RopeStyle::norm); }));
    print("gumbel", shortest([&] { table.gumbel_argmax(x.data(), n, 1.0f, -10.0f, 5); }));
    print("argmax", shortest([&] { table.argmax(x.data(), n); }));
}

}  // namespace

int main(int argc, char** argv) {
    const std::string isa = argc > 1 ? argv[1] : "all", type = argc > 2 ? argv[2] : "all";
    const size_t rows = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1536;
    const size_t cols = argc > 4 ? std::strtoul(argv[4], nullptr, 10) : 1536;
    std::printf("matrix %zu x %zu; GOP/s for 1 2 4 8 16 128 512 input rows\n", rows, cols);
    for (const kernels::KernelTable* table : kernels::test::tables()) {
        if (isa != "all" ? isa != table->name : table->isa == kernels::Isa::scalar) continue;
        for (const kernels::TypeInfo& info : kernels::kTypes)
            if (type == "all" || type == info.name) bench_matmul(*table, info.type, rows, cols);
        if (type != "all" && type != "attention") continue;
        for (const size_t hd : {64u, 256u})
            for (const size_t n : {1u, 64u}) bench_attention(*table, hd, 3, 1024, n);
        bench_rows(*table);
    }
}
