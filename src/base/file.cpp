#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace cadans {
namespace {

Error system_error(std::string_view doing, const std::string& path) {
    const int number = errno;
    ErrorCode code = ErrorCode::io;
    if (number == ENOENT || number == ENOTDIR) code = ErrorCode::not_found;
    if (number == EACCES || number == EPERM) code = ErrorCode::denied;
    return {code, fmt::format("cannot {} {}: {}", doing, path, std::strerror(number)), path};
}

struct Descriptor {
    int fd;
    ~Descriptor() {
        if (fd >= 0) ::close(fd);
    }
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
    const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file.fd < 0) return system_error("open", path);
    struct stat info {};
    if (::fstat(file.fd, &info) != 0) return system_error("look at", path);
    if (S_ISDIR(info.st_mode)) return bad_input(fmt::format("{} is a directory, not a file", path), path);
    if (!S_ISREG(info.st_mode)) return bad_input(fmt::format("{} is not a regular file", path), path);
    if (info.st_size == 0) return bad_input(fmt::format("{} is empty", path), path);
    const auto size = static_cast<size_t>(info.st_size);
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd, 0);
    if (data == MAP_FAILED) return system_error("map", path);
    return MappedFile(path, static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}

MappedFile::~MappedFile() {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

Result<std::string> read_text(const std::string& path, size_t limit_bytes) {
    auto file = MappedFile::open(path);
    if (!file) return std::move(file).error();
    const auto bytes = file->bytes();
    if (bytes.size() > limit_bytes)
        return Error{ErrorCode::too_large,
                     fmt::format("{} holds {} bytes; at most {} are read", path, bytes.size(), limit_bytes), path};
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status write_whole(const std::string& path, std::string_view content) {
    const std::string draft = fmt::format("{}.{}.part", path, ::getpid());
    const Descriptor file{::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
    if (file.fd < 0) return system_error("create", draft);
    const auto fail = [&] {
        Error error = system_error("write", draft);
        ::unlink(draft.c_str());
        return error;
    };
    while (!content.empty()) {
        const ssize_t n = ::write(file.fd, content.data(), content.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail();
        content.remove_prefix(static_cast<size_t>(n));
    }
    if (::fsync(file.fd) != 0 || std::rename(draft.c_str(), path.c_str()) != 0) return fail();
    return Ok{};
}

}  // namespace cadans
