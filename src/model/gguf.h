// A GGUF file whose every length, count and offset has been checked: nothing inside points outside it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "model/tensor_types.h"

namespace cadans::model {

/// The type of a metadata value, with the number that the format gives it.
enum class GgufType : uint32_t {
    u8 = 0,
    i8 = 1,
    u16 = 2,
    i16 = 3,
    u32 = 4,
    i32 = 5,
    f32 = 6,
    boolean = 7,
    string = 8,
    array = 9,
    u64 = 10,
    i64 = 11,
    f64 = 12,
};

/// "u32", "string", …
std::string_view gguf_type_name(GgufType type) noexcept;

/// One key and where its value lies. Views borrow from the file.
struct GgufEntry {
    std::string_view key;
    GgufType type = GgufType::u8;
    GgufType element = GgufType::u8;     ///< the type itself, or that of an array's items
    uint64_t count = 1;                  ///< items of an array; 1 for anything else
    uint64_t offset = 0;                 ///< of the key's record in the file, for messages
    std::span<const std::byte> payload;  ///< the value's bytes: of an array, its items; of a string, its text
};

/// One tensor of the table. Views borrow from the file.
struct GgufTensor {
    std::string_view name;
    uint32_t n_dims = 0;
    std::array<uint64_t, 4> dims = {1, 1, 1, 1};  ///< fastest first: {inputs, outputs, 1, 1} for a matrix
    TensorType type = TensorType::f32;
    uint64_t offset = 0;                 ///< of its first byte in the file
    uint64_t record_offset = 0;          ///< of its line in the table, for messages
    std::span<const std::byte> payload;  ///< its bytes, all inside the file

    uint64_t elements() const noexcept { return dims[0] * dims[1] * dims[2] * dims[3]; }
    uint64_t rows() const noexcept { return dims[1] * dims[2] * dims[3]; }
    uint64_t row_bytes() const noexcept { return payload.size() / rows(); }
};

/// "576 x 49152": dims as people write them, fastest first.
std::string format_dims(const GgufTensor& tensor);

/// A parsed file: metadata and tensor table. Versions 2 and 3, one file (no splits).
///
/// Lookups return nullopt for a key that is not there, and an error for one of another type; an error's
/// `where` names the key and its offset in the file.
///
/// Errors  bad_input for anything malformed, unsupported for other versions, byte orders, splits and
///         tensor types; all with field and file offset in `where`. Those of MappedFile::open besides.
/// Thread  immutable
/// Cost    one pass over the metadata; tensor bytes are not touched
/// Source  ggml's docs/gguf.md
class GgufFile {
  public:
    static Result<GgufFile> open(const std::string& path);

    /// The same over bytes that outlive the result; `name` is used in messages.
    static Result<GgufFile> parse(std::span<const std::byte> bytes, std::string name);

    const std::string& name() const noexcept { return name_; }
    uint32_t version() const noexcept { return version_; }
    uint64_t alignment() const noexcept { return alignment_; }
    uint64_t data_offset() const noexcept { return data_offset_; }
    uint64_t size_bytes() const noexcept { return bytes_.size(); }

    std::span<const GgufEntry> metadata() const noexcept { return entries_; }  ///< in file order
    std::span<const GgufTensor> tensors() const noexcept { return tensors_; }  ///< in file order
    const GgufEntry* find(std::string_view key) const noexcept;                ///< nullptr when absent
    const GgufTensor* tensor(std::string_view tensor_name) const noexcept;     ///< nullptr when absent

    /// A whole number that is not negative, of any integer type.
    Result<std::optional<uint64_t>> count(std::string_view key) const;
    /// A finite f32 or f64.
    Result<std::optional<double>> number(std::string_view key) const;
    Result<std::optional<bool>> flag(std::string_view key) const;
    Result<std::optional<std::string_view>> text(std::string_view key) const;
    /// One count for each of `n` layers: a scalar stands for all, an array must have n items.
    Result<std::optional<std::vector<uint64_t>>> layer_counts(std::string_view key, uint64_t n) const;
    Result<std::optional<std::vector<std::string_view>>> texts(std::string_view key) const;
    Result<std::optional<std::vector<float>>> numbers(std::string_view key) const;
    Result<std::optional<std::vector<int64_t>>> integers(std::string_view key) const;  ///< booleans count as 0 and 1

    /// Tells the system that these bytes of the file will not be needed again soon, so that they stop
    /// counting as this process's memory. Reading them again is allowed and only slower.
    void release(std::span<const std::byte> part) const noexcept;

    /// An error of this file: "NAME: message", with `where` as "field at byte N".
    Error error(ErrorCode code, std::string_view message, std::string_view field, uint64_t offset) const;

  private:
    friend class GgufParser;
    GgufFile() = default;
    const GgufEntry* find_typed(std::string_view key, bool array) const;
    Error type_error(const GgufEntry& entry, std::string_view expected) const;

    std::optional<MappedFile> mapped_;  ///< absent when the bytes are somebody else's
    std::span<const std::byte> bytes_;
    std::string name_;
    uint32_t version_ = 0;
    uint64_t alignment_ = 32;
    uint64_t data_offset_ = 0;
    std::vector<GgufEntry> entries_;
    std::vector<GgufTensor> tensors_;
    std::vector<uint32_t> entries_by_key_;   ///< positions in entries_, sorted by key
    std::vector<uint32_t> tensors_by_name_;  ///< positions in tensors_, sorted by name
};

}  // namespace cadans::model
