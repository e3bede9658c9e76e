// Where codes, high bits and scales lie in a packed panel: constants only, safe in any translation unit.
#pragma once

#include "kernels/types.h"

namespace cadans::kernels {

/// Facts of a quantised format that kernels need. Codes are unsigned; a weight is scale * (code - kZero) [+ min].
///
/// bits        width of a code
/// zero        what is subtracted from a code
/// has_min     adds a minimum per group (subtracted for the K formats)
/// super       eight groups of 32 share a block with 6-bit or 8-bit sub-scales
/// half_group  scales belong to 16 elements instead of 32
template <int bits, int zero_shift, bool has_min, bool super, bool half_group>
struct LayoutOf {
    static constexpr int kBits = bits;
    static constexpr int kZeroShift = zero_shift;  ///< the zero point is 1 << kZeroShift; -1: none
    static constexpr bool kMin = has_min;
    static constexpr bool kSuper = super;
    static constexpr bool kHalfGroup = half_group;
    static constexpr int kGroupsPerBlock = super ? 8 : 1;

    static constexpr size_t kCodeBytes = bits == 8 ? 512 : 256;                 ///< per group of 32, 16 rows
    static constexpr size_t kHighBytes = bits == 5 ? 64 : bits == 6 ? 128 : 0;  ///< per group of 32, 16 rows
    static constexpr size_t kHalfBytes = has_min ? 64 : 32;                     ///< f16 scales (and minima)
    static constexpr size_t kSubBytes = !super ? 0 : half_group ? 256 : 192;    ///< sub-scales of 8 groups
    static constexpr size_t kScaleBytes = kHalfBytes + kSubBytes;               ///< per block
    static constexpr size_t kGroupBytes = kCodeBytes + kHighBytes;
};

template <WeightType>
struct Layout;
template <>
struct Layout<WeightType::q4_0> : LayoutOf<4, 3, false, false, false> {};
template <>
struct Layout<WeightType::q4_1> : LayoutOf<4, -1, true, false, false> {};
template <>
struct Layout<WeightType::q5_0> : LayoutOf<5, 4, false, false, false> {};
template <>
struct Layout<WeightType::q5_1> : LayoutOf<5, -1, true, false, false> {};
template <>
struct Layout<WeightType::q8_0> : LayoutOf<8, 7, false, false, false> {};
template <>
struct Layout<WeightType::q4_k> : LayoutOf<4, -1, true, true, false> {};
template <>
struct Layout<WeightType::q5_k> : LayoutOf<5, -1, true, true, false> {};
template <>
struct Layout<WeightType::q6_k> : LayoutOf<6, 5, false, true, true> {};

}  // namespace cadans::kernels
