// A place in a run of bytes that can only move forward and never past the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace cadans::model {

/// Every read is checked against the bytes left; one that does not fit returns nullopt and moves nothing.
/// Numbers are little-endian, as the machine is (x86-64 and AArch64 Linux).
class ByteCursor {
  public:
    explicit ByteCursor(std::span<const std::byte> bytes, uint64_t at = 0) : bytes_(bytes), at_(at) {}

    uint64_t at() const noexcept { return at_; }
    uint64_t left() const noexcept { return bytes_.size() - at_; }

    template <class Number>
    std::optional<Number> read() noexcept {
        static_assert(std::is_trivially_copyable_v<Number>);
        if (left() < sizeof(Number)) return std::nullopt;
        Number number;
        std::memcpy(&number, bytes_.data() + at_, sizeof(Number));
        at_ += sizeof(Number);
        return number;
    }

    std::optional<std::span<const std::byte>> take(uint64_t n) noexcept {
        if (left() < n) return std::nullopt;
        const auto part = bytes_.subspan(at_, n);
        at_ += n;
        return part;
    }

  private:
    std::span<const std::byte> bytes_;
    uint64_t at_;  ///< at most bytes_.size()
};

inline std::string_view as_text(std::span<const std::byte> bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// a * b, or nullopt where it does not fit 64 bits.
inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) noexcept {
    uint64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
    return product;
}

/// a + b, or nullopt where it does not fit 64 bits.
inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) noexcept {
    uint64_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
    return sum;
}

/// `text` is well-formed UTF-8: no overlong form, no surrogate, nothing above U+10FFFF.
inline bool is_utf8(std::string_view text) noexcept {
    size_t i = 0;
    while (i < text.size()) {
        const auto lead = static_cast<uint8_t>(text[i]);
        if (lead < 0x80) {
            ++i;
            continue;
        }
        const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
        if (lead < 0xC2 || lead > 0xF4 || text.size() - i < length) return false;
        uint32_t point = lead & (0xFFU >> (length + 1));
        for (size_t k = 1; k < length; ++k) {
            const auto next = static_cast<uint8_t>(text[i + k]);
            if ((next & 0xC0) != 0x80) return false;
            point = point << 6 | (next & 0x3FU);
        }
        const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
        if (overlong || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return false;
        i += length;
    }
    return true;
}

}  // namespace cadans::model
