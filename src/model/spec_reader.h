// The steps by which a spec is read from a file's metadata and tensor table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/spec.h"

namespace cadans::model {

/// The text with anything that is not printable ASCII or UTF-8 replaced, cut to 200 bytes: names in files
/// are not to be trusted with a terminal.
std::string printable(std::string_view text);

/// One use: read() runs all steps in order.
class SpecReader {
  public:
    explicit SpecReader(const GgufFile& file) : file_(file) {}

    Result<ModelSpec> read();

  private:
    Status read_family();
    Status read_shape();
    Status read_heads();
    Status read_rope();
    Status read_window();
    Status read_scales();
    Status refuse_features();
    Status read_tensors();

    Status read_vocab_size();
    Status check_tensor(const ExpectedTensor& expected) const;
    Status refuse_unknown_tensors() const;
    Result<double> linear_factor();

    /// Typed lookups below the architecture's prefix, with a range.
    std::string key(std::string_view name) const { return spec_.architecture + "." + std::string(name); }
    Result<std::optional<uint64_t>> count_in(std::string_view name, uint64_t least, uint64_t most) const;
    Result<std::optional<double>> number_in(std::string_view name, double least, double most) const;
    /// A per-layer count that must be the same for all layers.
    Result<std::optional<uint32_t>> same_for_all_layers(std::string_view name, uint64_t least, uint64_t most) const;

    Error missing(std::string_view full_key) const;
    Error bad(std::string_view message, std::string_view name) const;
    Error unsupported_here(std::string_view message, std::string_view name) const;
    uint64_t offset_of(std::string_view name) const;

    const GgufFile& file_;
    ModelSpec spec_;
};

}  // namespace cadans::model
