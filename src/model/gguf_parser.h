// The one pass over a GGUF file's head that decides whether to believe it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/byte_cursor.h"
#include "model/gguf.h"

namespace cadans::model {

/// Reads header, metadata and tensor table in file order. One use.
class GgufParser {
  public:
    explicit GgufParser(GgufFile& file) : file_(file), cursor_(file.bytes_) {}

    Status parse();

  private:
    Status read_header();
    Status read_metadata();
    Status read_entry(uint64_t number);
    Status read_value(GgufEntry& entry);
    Status read_array(GgufEntry& entry);
    Status skip_items(const GgufEntry& entry, GgufType element, uint64_t count, int depth);
    Result<GgufType> read_type(std::string_view field);
    Status index_keys();
    Status read_alignment();
    Status refuse_splits();
    Status read_tensor_table();
    Result<GgufTensor> read_tensor(uint64_t number);
    Status read_dims(GgufTensor& tensor);
    Result<uint64_t> size_of(const GgufTensor& tensor);
    Status index_tensors();
    Status place_tensors();
    Status refuse_overlaps();

    Error bad(std::string_view message, std::string_view field, uint64_t offset) const;
    Error short_of(std::string_view what, std::string_view field, uint64_t need) const;

    GgufFile& file_;
    ByteCursor cursor_;
    uint64_t n_tensors_ = 0;
    uint64_t n_entries_ = 0;
    std::vector<uint64_t> tensor_starts_;  ///< as the table gives them: from the start of the data part
    std::vector<uint64_t> tensor_sizes_;
};

}  // namespace cadans::model
