// Calls kernels on small inputs, each inside `counted_call`, for a counter of instructions: count_instructions.py.
//
// Prints a line for each call, in order: its name and how many products (or elements) it computes.
#include <cstdio>
#include <functional>
#include <string>

#include "kernels/reference/test_data.h"

/// What is counted: the counter collects from its entry to its return.
extern "C" [[gnu::noinline]] void cadans_counted_call(const std::function<void()>& work) {
    work();
    asm volatile("" ::: "memory");  // no tail call, so that the return is the call's own
}

namespace {

namespace kernels = cadans::kernels;

void count(const kernels::KernelTable& table, const std::string& name, size_t amount,
           const std::function<void()>& work) {
    work();  // what happens once (lazy binding) is not the kernel's
    cadans_counted_call(work);
    std::printf("%s %s %zu\n", table.name, name.c_str(), amount);
}

/// As many panels as the widest tile takes, and a block of the formats that have long ones.
void count_products(const kernels::KernelTable& table, const kernels::TypeInfo& info) {
    constexpr size_t kRows = 64, kCols = 512, kMost = 16;
    kernels::test::Numbers numbers(1);
    const auto file = kernels::test::random_weights(info.type, kRows, kCols, numbers);
    const kernels::test::Packed w(info.type, file, kRows, kCols);
    const auto x = numbers.floats(kMost * kCols);
    const size_t stride = info.quantised ? kernels::activation_bytes(kCols) : kCols * sizeof(float);
    kernels::test::Aligned in(kMost * stride);
    for (size_t r = 0; r < kMost; ++r) {
        if (info.quantised)
            table.quantize_row(&x[r * kCols], kCols,
                               reinterpret_cast<kernels::ActivationGroup*>(in.data() + r * stride));
        else
            std::memcpy(in.data() + r * stride, &x[r * kCols], stride);
    }
    std::vector<float> out(kMost * kRows);
    for (const size_t n : {size_t{1}, size_t{4}, kMost})
        count(table, std::string(info.name) + "/" + std::to_string(n), kRows * kCols * n, [&] {
            table.matmul(w.matrix, 0, w.matrix.panels(), {in.data(), stride, n}, out.data(), kRows);
        });
}

void count_attention(const kernels::KernelTable& table, size_t head_dim, size_t rows) {
    constexpr size_t kTokens = 256, kHeads = 4;
    kernels::test::Numbers numbers(2);
    const size_t page = kernels::kv_page_bytes(head_dim), n_pages = kTokens / cadans::kPageTokens;
    kernels::test::Aligned memory(n_pages * page), scratch(kernels::attention_scratch_bytes(head_dim));
    std::vector<const std::byte*> pages;
    for (size_t p = 0; p < n_pages; ++p) pages.push_back(memory.data() + p * page);
    for (size_t t = 0; t < kTokens; ++t) {
        const auto k = numbers.floats(head_dim), v = numbers.floats(head_dim);
        table.kv_store(kernels::KvType::f16, memory.data() + t / cadans::kPageTokens * page, t % cadans::kPageTokens,
                       k.data(), v.data(), head_dim);
    }
    const auto q = numbers.floats(rows * kHeads * head_dim);
    std::vector<float> out(q.size());
    count(table, "attention-" + std::to_string(head_dim) + "/" + std::to_string(rows),
          2 * kTokens * rows * kHeads * head_dim, [&] {
              table.attention({head_dim, kHeads, 0, 0.1f, 0.0f},
                              {q.data(), kHeads * head_dim, head_dim, rows, kTokens - rows}, pages.data(),
                              {out.data(), kHeads * head_dim, head_dim}, scratch.data());
          });
}

void count_rows(const kernels::KernelTable& table) {
    constexpr size_t kElements = 1024;
    kernels::test::Numbers numbers(3);
    const auto x = numbers.floats(kElements), y = numbers.floats(kElements);
    std::vector<float> out(kElements);
    std::vector<kernels::ActivationGroup> groups(kElements / kernels::kGroup);
    const auto row = [&](const char* name, const auto& work) { count(table, name, kElements, work); };
    row("quantize", [&] { table.quantize_row(x.data(), kElements, groups.data()); });
    row("norm_quantize", [&] { table.rms_norm_quantize(x.data(), y.data(), kElements, 1e-5f, groups.data()); });
    row("silu_mul", [&] { table.silu_mul(x.data(), y.data(), kElements, out.data()); });
    row("gelu_mul", [&] { table.gelu_mul(x.data(), y.data(), kElements, out.data()); });
    row("rope", [&] { table.rope(out.data(), kElements / 64, 64, 64, x.data(), y.data(), kernels::RopeStyle::norm); });
    row("sum_exp", [&] { out[0] = table.sum_exp(x.data(), kElements, 1.0f); });
    row("argmax", [&] { out[0] = static_cast<float>(table.argmax(x.data(), kElements)); });
    row("gumbel_argmax",
        [&] { out[0] = static_cast<float>(table.gumbel_argmax(x.data(), kElements, 1.0f, -10.0f, 5)); });
}

}  // namespace

int main() {
    for (const kernels::Isa isa : {kernels::Isa::scalar, kernels::Isa::avx2}) {
        if (!kernels::isa_available(isa)) continue;
        const kernels::KernelTable& table = kernels::kernel_table(isa);
        for (const kernels::TypeInfo& info : kernels::kTypes) count_products(table, info);
        for (const size_t head_dim : {64u, 128u})
            for (const size_t rows : {1u, 24u}) count_attention(table, head_dim, rows);
        count_rows(table);
    }
}
