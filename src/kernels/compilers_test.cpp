// The units of the instruction sets, built by another compiler, give the same bits.
//
// The build makes a module of them with the compiler that it does not use itself (GCC or Clang), where there is one.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "kernels/reference/test_data.h"

namespace cadans::kernels {

namespace {

/// Everything a table computes, over fixed inputs, as one row of bytes.
class Fingerprint {
  public:
    explicit Fingerprint(const KernelTable& table) : t_(table) {
        for (const TypeInfo& info : kTypes) products(info);
        rows();
        attention(KvType::f16);
        attention(KvType::q8);
    }
    const std::vector<std::byte>& bytes() const { return bytes_; }

  private:
    void take(const void* data, size_t n) {
        const auto* at = static_cast<const std::byte*>(data);
        bytes_.insert(bytes_.end(), at, at + n);
    }
    void take(const std::vector<float>& x) { take(x.data(), x.size() * sizeof(float)); }

    void products(const TypeInfo& info) {
        const size_t rows = 70, cols = 512, most = 13;
        const auto file = test::random_weights(info.type, rows, cols, numbers_);
        const test::Packed w(info.type, file, rows, cols);
        const auto x = numbers_.floats(most * cols, 3.0f);
        std::vector<ActivationGroup> groups(most * cols / kGroup);
        t_.quantize_row(x.data(), x.size(), groups.data());
        take(groups.data(), groups.size() * sizeof(ActivationGroup));
        const InputRows in =
            info.quantised ? InputRows{reinterpret_cast<const std::byte*>(groups.data()), activation_bytes(cols), 0}
                           : InputRows{reinterpret_cast<const std::byte*>(x.data()), cols * 4, 0};
        for (size_t n = 1; n <= most; ++n) {
            std::vector<float> out(n * rows);
            t_.matmul(w.matrix, 0, w.matrix.panels(), {in.data, in.stride_bytes, n}, out.data(), rows);
            take(out);
        }
    }

    void rows() {
        const size_t n = 1000;
        const auto x = numbers_.floats(n, 20.0f), y = numbers_.floats(n, 2.0f);
        std::vector<float> out(n);
        const auto keep = [&](auto&& call) {
            call();
            take(out);
        };
        keep([&] { t_.rms_norm(x.data(), y.data(), n, 1e-6f, out.data()); });
        keep([&] { t_.add(x.data(), y.data(), n, out.data()); });
        keep([&] { t_.scale(x.data(), 0.3f, n, out.data()); });
        keep([&] { t_.silu_mul(x.data(), y.data(), n, out.data()); });
        keep([&] { t_.gelu_mul(x.data(), y.data(), n, out.data()); });
        keep([&] { t_.softcap(x.data(), 7.0f, n, out.data()); });
        keep([&] { t_.exp_shifted(x.data(), n, 20.0f, out.data()); });
        for (const RopeStyle style : {RopeStyle::norm, RopeStyle::neox})
            keep([&] { t_.rope(out.data(), 7, 140, 128, x.data(), y.data(), style); });
        std::vector<uint16_t> halves(n);
        t_.to_f16(x.data(), n, halves.data());
        take(halves.data(), 2 * n);
        keep([&] { t_.from_f16(halves.data(), n, out.data()); });
        for (uint64_t key = 0; key < 100; ++key) {
            const size_t token = t_.gumbel_argmax(y.data(), n, 1.3f, -1.0f, mix64(key));
            take(&token, sizeof token);
        }
        take({t_.max(x.data(), n), t_.sum_exp(x.data(), n, 20.0f), static_cast<float>(t_.argmax(x.data(), n))});
    }

    void attention(KvType type) {
        const size_t hd = 80, tokens = 600, n = 40;
        const size_t n_pages = (tokens + kPageTokens - 1) / kPageTokens;
        const size_t page_bytes = kv_page_bytes(hd, type);
        test::Aligned memory(n_pages * page_bytes), scratch(attention_scratch_bytes(hd));
        std::vector<const std::byte*> pages;
        for (size_t t = 0; t < tokens; ++t) {
            std::byte* page = memory.data() + t / kPageTokens * page_bytes;
            if (t % kPageTokens == 0) pages.push_back(page);
            const auto k = numbers_.floats(hd), v = numbers_.floats(hd);
            t_.kv_store(type, page, t % kPageTokens, k.data(), v.data(), hd);
        }
        const auto q = numbers_.floats(n * 2 * hd, 2.0f);
        for (const size_t rows : {1u, 2u, 40u}) {
            std::vector<float> out(rows * 2 * hd);
            t_.attention({hd, 2, 300, 0.3f, 30.0f, type}, {q.data(), 2 * hd, hd, rows, tokens - rows}, pages.data(),
                         {out.data(), 2 * hd, hd}, scratch.data());
            take(out);
        }
    }

    const KernelTable& t_;
    test::Numbers numbers_{77};
    std::vector<std::byte> bytes_;
};

}  // namespace

TEST(compilers, agree_bit_for_bit) {
    const std::string path = KERNELS_OTHER_COMPILER;
    if (path.empty()) GTEST_SKIP() << "the build found only one compiler";
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(module, nullptr) << dlerror();
    const std::vector<std::byte> truth = Fingerprint(kernel_table(Isa::scalar)).bytes();
    for (const KernelTable* table : test::tables()) {
        const auto* other =
            static_cast<const KernelTable*>(dlsym(module, (std::string("cadans_kernels_") + table->name).c_str()));
        ASSERT_NE(other, nullptr) << table->name;
        ASSERT_NE(other, table);
        EXPECT_TRUE(Fingerprint(*table).bytes() == truth) << table->name;
        EXPECT_TRUE(Fingerprint(*other).bytes() == truth) << table->name << " of the other compiler";
    }
    dlclose(module);
}

}  // namespace cadans::kernels
