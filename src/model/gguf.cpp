#include "model/gguf.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/byte_cursor.h"
#include "model/gguf_parser.h"

namespace cadans::model {
namespace {

bool is_integer(GgufType type) noexcept {
    return type != GgufType::f32 && type != GgufType::f64 && type != GgufType::boolean && type != GgufType::string &&
           type != GgufType::array;
}

/// The next integer of that type, or nullopt where it does not fit or the bytes are used up. Widened to
/// 64 bits with its sign; a u64 beyond the signed range counts as not fitting.
std::optional<int64_t> next_integer(ByteCursor& at, GgufType type) noexcept {
    const auto widen = [](auto number) -> std::optional<int64_t> {
        if (!number || !std::in_range<int64_t>(*number)) return std::nullopt;
        return static_cast<int64_t>(*number);
    };
    switch (type) {
        case GgufType::u8:
            return widen(at.read<uint8_t>());
        case GgufType::i8:
            return widen(at.read<int8_t>());
        case GgufType::u16:
            return widen(at.read<uint16_t>());
        case GgufType::i16:
            return widen(at.read<int16_t>());
        case GgufType::u32:
            return widen(at.read<uint32_t>());
        case GgufType::i32:
            return widen(at.read<int32_t>());
        case GgufType::u64:
            return widen(at.read<uint64_t>());
        case GgufType::i64:
            return widen(at.read<int64_t>());
        case GgufType::boolean:
            return widen(at.read<uint8_t>());
        case GgufType::f32:
        case GgufType::f64:
        case GgufType::string:
        case GgufType::array:
            break;
    }
    return std::nullopt;
}

std::optional<double> next_number(ByteCursor& at, GgufType type) noexcept {
    std::optional<double> number;
    if (type == GgufType::f64) {
        number = at.read<double>();
    } else if (const auto single = at.read<float>()) {
        number = static_cast<double>(*single);
    }
    if (!number || !std::isfinite(*number)) return std::nullopt;
    return number;
}

}  // namespace

std::string_view gguf_type_name(GgufType type) noexcept {
    constexpr std::array<std::string_view, 13> kNames = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                         "bool", "string", "array", "u64", "i64", "f64"};
    const auto i = static_cast<uint32_t>(type);
    return i < kNames.size() ? kNames[i] : "unknown";
}

std::string format_dims(const GgufTensor& tensor) {
    return fmt::format("{}", fmt::join(tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims, " x "));
}

Result<GgufFile> GgufFile::open(const std::string& path) {
    auto mapped = MappedFile::open(path);
    if (!mapped) return std::move(mapped).error();
    auto file = parse(mapped->bytes(), path.substr(path.find_last_of('/') + 1));
    if (file) file->mapped_ = *std::move(mapped);
    return file;
}

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes, std::string name) {
    GgufFile file;
    file.bytes_ = bytes;
    file.name_ = std::move(name);
    Status done = GgufParser(file).parse();
    if (!done) return std::move(done).error();
    return file;
}

Error GgufFile::error(ErrorCode code, std::string_view message, std::string_view field, uint64_t offset) const {
    return {code, fmt::format("{}: {}: {}", name_, field, message), fmt::format("{} at byte {}", field, offset)};
}

const GgufEntry* GgufFile::find(std::string_view key) const noexcept {
    const auto found = std::ranges::lower_bound(entries_by_key_, key, {}, [&](uint32_t i) { return entries_[i].key; });
    if (found == entries_by_key_.end() || entries_[*found].key != key) return nullptr;
    return &entries_[*found];
}

const GgufTensor* GgufFile::tensor(std::string_view tensor_name) const noexcept {
    const auto found =
        std::ranges::lower_bound(tensors_by_name_, tensor_name, {}, [&](uint32_t i) { return tensors_[i].name; });
    if (found == tensors_by_name_.end() || tensors_[*found].name != tensor_name) return nullptr;
    return &tensors_[*found];
}

Error GgufFile::type_error(const GgufEntry& entry, std::string_view expected) const {
    const std::string found = entry.type == GgufType::array
                                  ? fmt::format("an array of {} {}", entry.count, gguf_type_name(entry.element))
                                  : std::string(gguf_type_name(entry.type));
    return error(ErrorCode::bad_input, fmt::format("expected {}, found {}", expected, found), entry.key, entry.offset);
}

Result<std::optional<uint64_t>> GgufFile::count(std::string_view key) const {
    const GgufEntry* const entry = find(key);
    if (entry == nullptr) return std::optional<uint64_t>();
    if (!is_integer(entry->type)) return type_error(*entry, "a whole number");
    ByteCursor at(entry->payload);
    const auto value = next_integer(at, entry->type);
    if (!value || *value < 0) return type_error(*entry, "a whole number from 0 to 2^63");
    return std::optional<uint64_t>(static_cast<uint64_t>(*value));
}

Result<std::optional<double>> GgufFile::number(std::string_view key) const {
    const GgufEntry* const entry = find(key);
    if (entry == nullptr) return std::optional<double>();
    if (entry->type != GgufType::f32 && entry->type != GgufType::f64) return type_error(*entry, "f32 or f64");
    ByteCursor at(entry->payload);
    const auto value = next_number(at, entry->type);
    if (!value) return error(ErrorCode::bad_input, "the number is not finite", entry->key, entry->offset);
    return std::optional<double>(*value);
}

Result<std::optional<bool>> GgufFile::flag(std::string_view key) const {
    const GgufEntry* const entry = find(key);
    if (entry == nullptr) return std::optional<bool>();
    if (entry->type != GgufType::boolean) return type_error(*entry, "bool");
    return std::optional<bool>(std::to_integer<uint8_t>(entry->payload[0]) != 0);
}

Result<std::optional<std::string_view>> GgufFile::text(std::string_view key) const {
    const GgufEntry* const entry = find(key);
    if (entry == nullptr) return std::optional<std::string_view>();
    if (entry->type != GgufType::string) return type_error(*entry, "string");
    return std::optional<std::string_view>(as_text(entry->payload));
}

Result<std::optional<std::vector<uint64_t>>> GgufFile::layer_counts(std::string_view key, uint64_t n) const {
    const GgufEntry* const entry = find(key);
    if (entry == nullptr) return std::optional<std::vector<uint64_t>>();
    if (entry->type != GgufType::array) {
        auto one = count(key);
        if (!one) return std::move(one).error();
        return std::optional(std::vector<uint64_t>(n, **one));
    }
    if (entry->count != n) return type_error(*entry, fmt::format("one number or {}, one a layer", n));
    auto all = integers(key);
    if (!all) return std::move(all).error();
    std::vector<uint64_t> counts;
    counts.reserve(n);
    for (const int64_t value : **all) {
        if (value < 0) return type_error(*entry, "numbers from 0 on");
        counts.push_back(static_cast<uint64_t>(value));
    }
    return std::optional(std::move(counts));
}

Result<std::optional<std::vector<std::string_view>>> GgufFile::texts(std::string_view key) const {
    const GgufEntry* const entry = find(key);
    if (entry == nullptr) return std::optional<std::vector<std::string_view>>();
    if (entry->type != GgufType::array || entry->element != GgufType::string)
        return type_error(*entry, "an array of string");
    std::vector<std::string_view> items;
    items.reserve(entry->count);
    // Lengths were checked when the file was parsed, but a mapped file can change under us: check again.
    ByteCursor at(entry->payload);
    for (uint64_t i = 0; i < entry->count; ++i) {
        const auto length = at.read<uint64_t>();
        const auto item = length ? at.take(*length) : std::nullopt;
        if (!item) return error(ErrorCode::bad_input, "the file changed while it was read", entry->key, entry->offset);
        items.push_back(as_text(*item));
    }
    return std::optional(std::move(items));
}

Result<std::optional<std::vector<float>>> GgufFile::numbers(std::string_view key) const {
    const GgufEntry* const entry = find(key);
    if (entry == nullptr) return std::optional<std::vector<float>>();
    const bool right =
        entry->type == GgufType::array && (entry->element == GgufType::f32 || entry->element == GgufType::f64);
    if (!right) return type_error(*entry, "an array of f32");
    std::vector<float> items;
    items.reserve(entry->count);
    ByteCursor at(entry->payload);
    for (uint64_t i = 0; i < entry->count; ++i) {
        const auto value = next_number(at, entry->element);
        if (!value || std::abs(*value) > static_cast<double>(std::numeric_limits<float>::max()))
            return error(ErrorCode::bad_input, fmt::format("item {} is not finite", i), entry->key, entry->offset);
        items.push_back(static_cast<float>(*value));
    }
    return std::optional(std::move(items));
}

Result<std::optional<std::vector<int64_t>>> GgufFile::integers(std::string_view key) const {
    const GgufEntry* const entry = find(key);
    if (entry == nullptr) return std::optional<std::vector<int64_t>>();
    const bool right =
        entry->type == GgufType::array && (is_integer(entry->element) || entry->element == GgufType::boolean);
    if (!right) return type_error(*entry, "an array of whole numbers");
    std::vector<int64_t> items;
    items.reserve(entry->count);
    ByteCursor at(entry->payload);
    for (uint64_t i = 0; i < entry->count; ++i) {
        const auto value = next_integer(at, entry->element);
        if (!value)
            return error(ErrorCode::bad_input, fmt::format("item {} is out of range", i), entry->key, entry->offset);
        items.push_back(*value);
    }
    return std::optional(std::move(items));
}

void GgufFile::release(std::span<const std::byte> part) const noexcept {
    if (!mapped_) return;
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto begin = (reinterpret_cast<uintptr_t>(part.data()) + page - 1) / page * page;
    const auto end = reinterpret_cast<uintptr_t>(part.data() + part.size()) / page * page;
    // A failure only means that the pages stay counted for longer.
    if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace cadans::model
