// Prints how fast the kernels are on one thread, beside what the machine can do at best: a page of docs/performance.
//
// usage: kernels_bench [isa|all] [type|all] [rows of the matrix] [inputs]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "kernels/probe.h"
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

/// The machine's peaks, probed beside each table of figures, since clocks move.
struct Peaks {
    explicit Peaks(const kernels::KernelTable& table) {
        cadans::ThreadPool pool(1);
        dot = kernels::measure_dot_peak(table, pool);
        fma = kernels::measure_fma_peak(table, pool);
    }
    double dot, fma;
};

constexpr size_t kInputRows[] = {1, 2, 4, 8, 16, 128, 512};

void bench_matmul(const kernels::KernelTable& table, kernels::WeightType type, size_t rows, size_t cols) {
    kernels::test::Numbers numbers(1);
    const auto file = kernels::test::random_weights(type, rows, cols, numbers);
    const kernels::test::Packed w(type, file, rows, cols);
    const bool quantised = kernels::type_info(type).quantised;
    std::printf("| %s |", std::string(kernels::type_info(type).name).c_str());
    double last = 0.0;
    for (const size_t n : kInputRows) {
        const auto x = numbers.floats(n * cols);
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
        last = 2.0 * static_cast<double>(rows) * static_cast<double>(cols) * static_cast<double>(n) / seconds;
        if (n == 1) std::printf(" %.1f GB/s |", 1e-9 * static_cast<double>(w.bytes.size()) / seconds);
        std::printf(" %.0f |", 1e-9 * last);
    }
    const Peaks peaks(table);
    std::printf(" %.0f%% |\n", 100.0 * last / (quantised ? peaks.dot : peaks.fma));
    std::fflush(stdout);
}

void bench_attention(const kernels::KernelTable& table, size_t hd, size_t heads, size_t tokens, size_t n) {
    kernels::test::Numbers numbers(2);
    const size_t n_pages = (tokens + 31) / 32;
    kernels::test::Aligned memory(n_pages * kernels::kv_page_bytes(hd));
    std::vector<const std::byte*> pages;
    for (size_t p = 0; p < n_pages; ++p) pages.push_back(memory.data() + p * kernels::kv_page_bytes(hd));
    for (size_t t = 0; t < n_pages * 32; ++t) {
        const auto k = numbers.floats(hd), v = numbers.floats(hd);
        table.kv_store(kernels::KvType::f16, memory.data() + t / 32 * kernels::kv_page_bytes(hd), t % 32, k.data(),
                       v.data(), hd);
    }
    const auto q = numbers.floats(n * heads * hd);
    std::vector<float> out(q.size());
    kernels::test::Aligned scratch(kernels::attention_scratch_bytes(hd));
    const double seconds = shortest([&] {
        table.attention({hd, heads, 0, 0.1f, 0.0f}, {q.data(), heads * hd, hd, n, tokens - n}, pages.data(),
                        {out.data(), heads * hd, hd}, scratch.data());
    });
    const double keys = static_cast<double>(n) * (static_cast<double>(tokens) - 0.5 * static_cast<double>(n));
    const double rate = 4.0 * keys * static_cast<double>(heads * hd) / seconds;
    const double bytes = static_cast<double>(n_pages * kernels::kv_page_bytes(hd));
    std::printf("| %zu | %zu | %zu | %zu | %.1f | %.0f%% | %.1f |\n", hd, heads, tokens, n, 1e-9 * rate,
                100.0 * rate / Peaks(table).fma, 1e-9 * bytes / seconds);
    std::fflush(stdout);
}

void bench_rows(const kernels::KernelTable& table) {
    kernels::test::Numbers numbers(3);
    const size_t n = 1536;
    const auto x = numbers.floats(n), y = numbers.floats(n);
    std::vector<float> out(n);
    std::vector<kernels::ActivationGroup> groups(n / 32);
    const auto print = [&](const char* what, double seconds) {
        std::printf("| %s | %.2f |\n", what, 1e-9 * static_cast<double>(n) / seconds);
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

std::string cpu_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    return "unknown";
}

}  // namespace

int main(int argc, char** argv) {
    const std::string isa = argc > 1 ? argv[1] : "all", type = argc > 2 ? argv[2] : "all";
    const size_t rows = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1024;
    const size_t cols = argc > 4 ? std::strtoul(argv[4], nullptr, 10) : 2048;
    std::printf("CPU: %s\n", cpu_name().c_str());
    for (const kernels::KernelTable* table : kernels::test::tables()) {
        if (isa != "all" ? isa != table->name : table->isa == kernels::Isa::scalar) continue;
        const Peaks peaks(*table);
        std::printf("\n%s, one thread: integer-dot peak %.0f GOP/s, f32 FMA peak %.0f GFLOP/s.\n", table->name,
                    1e-9 * peaks.dot, 1e-9 * peaks.fma);
        std::printf("\nProducts with a matrix of %zu x %zu, GOP/s by the number of input rows:\n\n", rows, cols);
        std::printf("| type | 1 row, weights read |");
        for (const size_t n : kInputRows) std::printf(" %zu |", n);
        std::printf(" share of peak at %zu |\n| --- |", kInputRows[std::size(kInputRows) - 1]);
        for (size_t i = 0; i < std::size(kInputRows) + 2; ++i) std::printf(" --- |");
        std::printf("\n");
        for (const kernels::TypeInfo& info : kernels::kTypes)
            if (type == "all" || type == info.name) bench_matmul(*table, info.type, rows, cols);
        if (type == "all" || type == "attention") {
            std::printf(
                "\nAttention of one kv head:\n\n| head size | query heads | keys | rows | GFLOP/s | share of FMA "
                "peak | keys and values read, GB/s |\n| --- | --- | --- | --- | --- | --- | --- |\n");
            for (const size_t hd : {64u, 128u, 256u})
                for (const size_t n : {1u, 64u})
                    for (const size_t tokens : {1024u, 8192u}) bench_attention(*table, hd, 4, tokens, n);
        }
        if (type == "all" || type == "rows") {
            std::printf("\nRows of 1536 elements:\n\n| kernel | G elements/s |\n| --- | --- |\n");
            bench_rows(*table);
        }
    }
}
