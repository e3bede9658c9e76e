// Where codes, high bits and scales lie in a packed panel: constants only, safe in any translation unit.
#pragma once

#include "kernels/types.h"

namespace cadans::kernels {

/// How a code becomes a number: as it is, or through a table of 16.
enum class CodeBook : uint8_t {
    none,
    iq4,   ///< sixteen levels, denser around zero
    e2m1,  ///< twice the values of a float of 1 sign, 2 exponent and 1 mantissa bits
};

// Source: the GGUF format (IQ4_NL), OCP Microscaling Formats 1.0, table 4 (E2M1, here doubled to be whole).
constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr int8_t kE2m1Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// How a block keeps its scales.
enum class ScaleForm : uint8_t {
    half,           ///< one f16, and one for a minimum, for 32 elements
    exponent,       ///< one byte e for 32 elements: 2^(e - 128)
    six_and_six,    ///< f16 d and dmin; of eight groups of 32 a 6-bit scale and a 6-bit minimum
    six,            ///< f16 d; of eight groups of 32 a 6-bit scale, less 32
    eight_halves,   ///< f16 d; of sixteen groups of 16 an s8 scale
    six_halves,     ///< f16 d; of sixteen groups of 16 a 6-bit scale, less 32
    four_and_four,  ///< f16 d and dmin; of sixteen groups of 16 a 4-bit scale and a 4-bit minimum
};

/// How codes lie and what the arithmetic of a group is: all that a product asks of a format, its scales once read.
///
/// bits        width of a stored code; a weight is scale * (number - zero point) [+ min]
/// zero        the zero point is 1 << zero; -1: none
/// has_min     adds a minimum per group (subtracted for the K formats)
/// half_group  scales (and minima) belong to 16 elements instead of 32
/// book        numbers come from a table; they are stored with the zero point added, so they are unsigned
template <int bits, int zero, bool has_min, bool half_group, CodeBook book = CodeBook::none>
struct FormOf {
    static constexpr int kBits = bits;
    static constexpr int kLowBits = bits == 8 ? 8 : bits >= 4 ? 4 : 2;  ///< in planes of their own, then the others
    static constexpr int kHighBits = bits - kLowBits;
    static constexpr CodeBook kBook = book;
    /// Width of the numbers that products take.
    static constexpr int kWidth = book == CodeBook::iq4 ? 8 : book == CodeBook::e2m1 ? 5 : bits;
    static constexpr int kZeroShift = zero;
    static constexpr bool kMin = has_min;
    static constexpr bool kHalfGroup = half_group;
    static constexpr size_t kCodeBytes = 64 * kLowBits;   ///< per group of 32, 16 rows
    static constexpr size_t kHighBytes = 64 * kHighBits;  ///< per group of 32, 16 rows
};

/// A form and where the scales of a block lie.
template <class FormType, ScaleForm scales>
struct LayoutOf : FormType {
    using Form = FormType;
    static constexpr ScaleForm kScales = scales;
    static constexpr bool kSuper = scales != ScaleForm::half && scales != ScaleForm::exponent;
    static constexpr int kGroupsPerBlock = kSuper ? 8 : 1;
    /// f16 scales (and minima), or exponents, of 16 rows.
    static constexpr size_t kBaseBytes = scales == ScaleForm::exponent ? 16 : FormType::kMin ? 64 : 32;
    /// Sub-scales of 8 groups of 32, 16 rows.
    static constexpr size_t kSubBytes = scales == ScaleForm::six                                              ? 96
                                        : scales == ScaleForm::six_and_six || scales == ScaleForm::six_halves ? 192
                                        : kSuper                                                              ? 256
                                                                                                              : 0;
    static constexpr size_t kScaleBytes = kBaseBytes + kSubBytes;  ///< per block, 16 rows
};

template <WeightType>
struct Layout;
template <>
struct Layout<WeightType::q4_0> : LayoutOf<FormOf<4, 3, false, false>, ScaleForm::half> {};
template <>
struct Layout<WeightType::q4_1> : LayoutOf<FormOf<4, -1, true, false>, ScaleForm::half> {};
template <>
struct Layout<WeightType::q5_0> : LayoutOf<FormOf<5, 4, false, false>, ScaleForm::half> {};
template <>
struct Layout<WeightType::q5_1> : LayoutOf<FormOf<5, -1, true, false>, ScaleForm::half> {};
template <>
struct Layout<WeightType::q8_0> : LayoutOf<FormOf<8, 7, false, false>, ScaleForm::half> {};
template <>
struct Layout<WeightType::q2_k> : LayoutOf<FormOf<2, -1, true, true>, ScaleForm::four_and_four> {};
template <>
struct Layout<WeightType::q3_k> : LayoutOf<FormOf<3, 2, false, true>, ScaleForm::six_halves> {};
template <>
struct Layout<WeightType::q4_k> : LayoutOf<FormOf<4, -1, true, false>, ScaleForm::six_and_six> {};
template <>
struct Layout<WeightType::q5_k> : LayoutOf<FormOf<5, -1, true, false>, ScaleForm::six_and_six> {};
template <>
struct Layout<WeightType::q6_k> : LayoutOf<FormOf<6, 5, false, true>, ScaleForm::eight_halves> {};
template <>
struct Layout<WeightType::iq4_nl> : LayoutOf<FormOf<4, 7, false, false, CodeBook::iq4>, ScaleForm::half> {};
template <>
struct Layout<WeightType::iq4_xs> : LayoutOf<FormOf<4, 7, false, false, CodeBook::iq4>, ScaleForm::six> {};
template <>
struct Layout<WeightType::mxfp4> : LayoutOf<FormOf<4, 4, false, false, CodeBook::e2m1>, ScaleForm::exponent> {};

}  // namespace cadans::kernels
