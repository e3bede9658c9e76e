#include "model/tensor_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"

namespace cadans::model {
namespace {

using T = TensorType;

constexpr std::array kTypes = {
    TensorTypeInfo{T::f32, "F32", 1, 4, true},
    TensorTypeInfo{T::f16, "F16", 1, 2, true},
    TensorTypeInfo{T::q4_0, "Q4_0", 32, 18, true},
    TensorTypeInfo{T::q4_1, "Q4_1", 32, 20, true},
    TensorTypeInfo{T::q5_0, "Q5_0", 32, 22, true},
    TensorTypeInfo{T::q5_1, "Q5_1", 32, 24, true},
    TensorTypeInfo{T::q8_0, "Q8_0", 32, 34, true},
    TensorTypeInfo{T::q8_1, "Q8_1", 32, 36, false},
    TensorTypeInfo{T::q2_k, "Q2_K", 256, 84, true},
    TensorTypeInfo{T::q3_k, "Q3_K", 256, 110, true},
    TensorTypeInfo{T::q4_k, "Q4_K", 256, 144, true},
    TensorTypeInfo{T::q5_k, "Q5_K", 256, 176, true},
    TensorTypeInfo{T::q6_k, "Q6_K", 256, 210, true},
    TensorTypeInfo{T::q8_k, "Q8_K", 256, 292, false},
    TensorTypeInfo{T::iq2_xxs, "IQ2_XXS", 256, 66, false},
    TensorTypeInfo{T::iq2_xs, "IQ2_XS", 256, 74, false},
    TensorTypeInfo{T::iq3_xxs, "IQ3_XXS", 256, 98, false},
    TensorTypeInfo{T::iq1_s, "IQ1_S", 256, 50, false},
    TensorTypeInfo{T::iq4_nl, "IQ4_NL", 32, 18, true},
    TensorTypeInfo{T::iq3_s, "IQ3_S", 256, 110, false},
    TensorTypeInfo{T::iq2_s, "IQ2_S", 256, 82, false},
    TensorTypeInfo{T::iq4_xs, "IQ4_XS", 256, 136, true},
    TensorTypeInfo{T::i8, "I8", 1, 1, false},
    TensorTypeInfo{T::i16, "I16", 1, 2, false},
    TensorTypeInfo{T::i32, "I32", 1, 4, false},
    TensorTypeInfo{T::i64, "I64", 1, 8, false},
    TensorTypeInfo{T::f64, "F64", 1, 8, false},
    TensorTypeInfo{T::iq1_m, "IQ1_M", 256, 56, false},
    TensorTypeInfo{T::bf16, "BF16", 1, 2, true},
    TensorTypeInfo{T::tq1_0, "TQ1_0", 256, 54, false},
    TensorTypeInfo{T::tq2_0, "TQ2_0", 256, 66, false},
    TensorTypeInfo{T::mxfp4, "MXFP4", 32, 17, true},
    TensorTypeInfo{T::nvfp4, "NVFP4", 64, 36, false},
    TensorTypeInfo{T::q1_0, "Q1_0", 128, 18, false},
    TensorTypeInfo{T::q2_0, "Q2_0", 64, 18, false},
};

/// Numbers that ggml once used and has taken back; files with them are from old tools.
struct RemovedType {
    uint32_t id;
    std::string_view name;
};
constexpr std::array kRemoved = {
    RemovedType{4, "Q4_2"},        RemovedType{5, "Q4_3"},        RemovedType{31, "Q4_0_4_4"},
    RemovedType{32, "Q4_0_4_8"},   RemovedType{33, "Q4_0_8_8"},   RemovedType{36, "IQ4_NL_4_4"},
    RemovedType{37, "IQ4_NL_4_8"}, RemovedType{38, "IQ4_NL_8_8"},
};

}  // namespace

const TensorTypeInfo* find_tensor_type(uint32_t id) noexcept {
    const auto* const found =
        std::ranges::find(kTypes, id, [](const TensorTypeInfo& info) { return static_cast<uint32_t>(info.type); });
    return found == kTypes.end() ? nullptr : found;
}

const TensorTypeInfo& tensor_type_info(TensorType type) noexcept {
    const TensorTypeInfo* const found = find_tensor_type(static_cast<uint32_t>(type));
    check(found != nullptr, "a TensorType is in the closed list");
    return *found;
}

std::string tensor_type_name(uint32_t id) {
    if (const TensorTypeInfo* const known = find_tensor_type(id)) return std::string(known->name);
    const auto* const removed = std::ranges::find(kRemoved, id, &RemovedType::id);
    if (removed != kRemoved.end()) return fmt::format("{} (removed from the format)", removed->name);
    return fmt::format("type {}", id);
}

std::string runnable_tensor_types() {
    std::string names;
    for (const TensorTypeInfo& info : kTypes)
        if (info.runnable) names += (names.empty() ? "" : ", ") + std::string(info.name);
    return names;
}

}  // namespace cadans::model
