// Files: mapped for reading, and written so that a half-written one is never seen.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cadans {

/// A regular file mapped read-only. One owner; the bytes are immutable while nobody changes the file.
class MappedFile {
  public:
    /// Errors: not_found, denied, bad_input (a directory, a device, empty), io. Each names the path.
    static Result<MappedFile> open(const std::string& path);

    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    ~MappedFile();

    std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
    const std::string& path() const noexcept { return path_; }

  private:
    MappedFile(std::string path, const std::byte* data, size_t size)
        : path_(std::move(path)), data_(data), size_(size) {}

    std::string path_;
    const std::byte* data_ = nullptr;
    size_t size_ = 0;
};

/// The whole of a text file of at most `limit_bytes`. Errors as MappedFile::open, and too_large.
Result<std::string> read_text(const std::string& path, size_t limit_bytes);

/// Writes beside `path`, syncs, then renames over it. Errors: io (disk full included), denied.
Status write_whole(const std::string& path, std::string_view content);

}  // namespace cadans
