// A buffer of plain values on a cache line, sized once.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace cadans::engine {

/// `n` zeroed values of T, 64-byte aligned. One owner.
template <class T>
class Aligned {
  public:
    Aligned() = default;
    explicit Aligned(size_t n) : data_(new (std::align_val_t{64}) T[n]()), n_(n) {}
    Aligned(Aligned&& other) noexcept : data_(other.data_), n_(other.n_) { other.data_ = nullptr, other.n_ = 0; }
    Aligned& operator=(Aligned&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(n_, other.n_);
        return *this;
    }
    ~Aligned() { ::operator delete[](data_, std::align_val_t{64}); }

    T* data() const noexcept { return data_; }
    T& operator[](size_t i) const noexcept { return data_[i]; }
    size_t size() const noexcept { return n_; }

  private:
    T* data_ = nullptr;
    size_t n_ = 0;
};

}  // namespace cadans::engine
