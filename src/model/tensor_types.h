// The weight types a GGUF file may hold: their names and the sizes of their blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cadans::model {

/// How a tensor's numbers are stored, with the number that GGUF files use. Source: ggml's `ggml.h`.
enum class TensorType : uint32_t {
    f32 = 0,
    f16 = 1,
    q4_0 = 2,
    q4_1 = 3,
    q5_0 = 6,
    q5_1 = 7,
    q8_0 = 8,
    q8_1 = 9,
    q2_k = 10,
    q3_k = 11,
    q4_k = 12,
    q5_k = 13,
    q6_k = 14,
    q8_k = 15,
    iq2_xxs = 16,
    iq2_xs = 17,
    iq3_xxs = 18,
    iq1_s = 19,
    iq4_nl = 20,
    iq3_s = 21,
    iq2_s = 22,
    iq4_xs = 23,
    i8 = 24,
    i16 = 25,
    i32 = 26,
    i64 = 27,
    f64 = 28,
    iq1_m = 29,
    bf16 = 30,
    tq1_0 = 34,
    tq2_0 = 35,
    mxfp4 = 39,
    nvfp4 = 40,
    q1_0 = 41,
    q2_0 = 42,
};

/// One stored type: a row of n numbers is n / block_weights blocks of block_bytes bytes.
struct TensorTypeInfo {
    TensorType type;
    std::string_view name;   ///< as people write it: "Q4_K"
    uint32_t block_weights;  ///< numbers in a block, at least 1
    uint32_t block_bytes;    ///< bytes of a block, at least 1
    bool runnable;           ///< this program can compute with it
};

/// What is known about a type number from a file; nullptr for one outside the closed list.
const TensorTypeInfo* find_tensor_type(uint32_t id) noexcept;

/// The same for a type known to be in the list.
const TensorTypeInfo& tensor_type_info(TensorType type) noexcept;

/// The name of any type number: "Q4_K", "Q4_2 (removed)", "type 137".
std::string tensor_type_name(uint32_t id);

/// "F32, F16, BF16, Q4_0, …": the types this program can compute with, for error messages.
std::string runnable_tensor_types();

}  // namespace cadans::model
