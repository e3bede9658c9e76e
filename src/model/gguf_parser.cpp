#include "model/gguf_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

namespace cadans::model {
namespace {

constexpr uint64_t kEntriesMax = uint64_t{1} << 20;
constexpr uint64_t kTensorsMax = uint64_t{1} << 17;
constexpr uint64_t kSmallestEntry = 8 + 1 + 4 + 1;           // key of one byte, type, value of one byte
constexpr uint64_t kSmallestTensor = 8 + 1 + 4 + 8 + 4 + 8;  // name of one byte, one dimension
constexpr uint64_t kKeyBytesMax = 1024;
constexpr uint64_t kTextBytesMax = uint64_t{1} << 20;
constexpr uint64_t kTemplateBytesMax = uint64_t{64} << 20;
constexpr uint64_t kAlignmentMax = 65'536;
constexpr int kNestingMax = 4;
constexpr uint32_t kTypes = 13;
constexpr std::string_view kTemplateKey = "tokenizer.chat_template";

/// Bytes of a value of that type; of a string or an array, the least it can take.
uint64_t least_bytes(GgufType type) noexcept {
    constexpr std::array<uint8_t, kTypes> kBytes = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
    return kBytes[static_cast<uint32_t>(type)];
}

bool is_fixed(GgufType type) noexcept { return type != GgufType::string && type != GgufType::array; }

std::string_view foreign_kind(std::string_view head) noexcept {
    if (head.starts_with("lmgg") || head.starts_with("tjgg") || head.starts_with("fmgg")) return "an old GGML file";
    if (head.starts_with("FUGG")) return "a GGUF file in the wrong byte order";
    if (head.starts_with("PK\x03\x04")) return "a zip archive (a PyTorch file?)";
    if (head.size() > 8 && head[8] == '{') return "a safetensors file";
    if (head.starts_with("version http")) return "a Git LFS pointer, not the file itself";
    if (head.starts_with("<")) return "a web page";
    return "no GGUF file";
}

}  // namespace

Error GgufParser::bad(std::string_view message, std::string_view field, uint64_t offset) const {
    return file_.error(ErrorCode::bad_input, message, field, offset);
}

Error GgufParser::short_of(std::string_view what, std::string_view field, uint64_t need) const {
    return bad(fmt::format("{} needs {} bytes, but only {} are left; the file is cut short or corrupt", what, need,
                           cursor_.left()),
               field, cursor_.at());
}

Status GgufParser::parse() {
    for (Status (GgufParser::*const step)() :
         {&GgufParser::read_header, &GgufParser::read_metadata, &GgufParser::index_keys, &GgufParser::read_alignment,
          &GgufParser::refuse_splits, &GgufParser::read_tensor_table, &GgufParser::index_tensors,
          &GgufParser::place_tensors, &GgufParser::refuse_overlaps}) {
        Status done = (this->*step)();
        if (!done) return done;
    }
    return Ok{};
}

Status GgufParser::read_header() {
    const auto head = as_text(file_.bytes_.first(std::min<size_t>(file_.bytes_.size(), 12)));
    if (!head.starts_with("GGUF"))
        return bad(fmt::format("this is {}; expected the four bytes GGUF at its start", foreign_kind(head)), "magic",
                   0);
    cursor_.take(4);
    const auto version = cursor_.read<uint32_t>();
    if (!version) return short_of("the version", "version", 4);
    if (*version != 0 && (*version & 0xFFFFU) == 0)
        return file_.error(ErrorCode::unsupported, "the file is big-endian; only little-endian files are read",
                           "version", 4);
    if (*version != 2 && *version != 3)
        return file_.error(ErrorCode::unsupported,
                           fmt::format("version {} of the format; versions 2 and 3 are read", *version), "version", 4);
    file_.version_ = *version;

    const auto tensors = cursor_.read<uint64_t>();
    if (!tensors) return short_of("the number of tensors", "tensor_count", 8);
    const auto entries = cursor_.read<uint64_t>();
    if (!entries) return short_of("the number of metadata keys", "metadata_kv_count", 8);
    const uint64_t tensors_max = std::min(kTensorsMax, cursor_.left() / kSmallestTensor);
    if (*tensors > tensors_max)
        return bad(fmt::format("{} tensors; this file has room for at most {}", *tensors, tensors_max), "tensor_count",
                   8);
    const uint64_t entries_max = std::min(kEntriesMax, cursor_.left() / kSmallestEntry);
    if (*entries > entries_max)
        return bad(fmt::format("{} metadata keys; this file has room for at most {}", *entries, entries_max),
                   "metadata_kv_count", 16);
    n_tensors_ = *tensors;
    n_entries_ = *entries;
    return Ok{};
}

Status GgufParser::read_metadata() {
    file_.entries_.reserve(n_entries_);
    for (uint64_t i = 0; i < n_entries_; ++i) {
        Status done = read_entry(i);
        if (!done) return done;
    }
    return Ok{};
}

Status GgufParser::read_entry(uint64_t number) {
    const std::string field = fmt::format("metadata key {}", number);
    GgufEntry entry;
    entry.offset = cursor_.at();
    const auto length = cursor_.read<uint64_t>();
    if (!length) return short_of("the length of the key", field, 8);
    if (*length == 0) return bad("the key is empty", field, entry.offset);
    if (*length > kKeyBytesMax)
        return bad(fmt::format("the key has {} bytes; at most {} are allowed", *length, kKeyBytesMax), field,
                   entry.offset);
    const auto key = cursor_.take(*length);
    if (!key) return short_of("the key", field, *length);
    entry.key = as_text(*key);
    if (entry.key.find('\0') != std::string_view::npos || !is_utf8(entry.key))
        return bad("the key is not valid UTF-8 without NUL", field, entry.offset);

    auto type = read_type(entry.key);
    if (!type) return std::move(type).error();
    entry.type = entry.element = *type;
    Status done = entry.type == GgufType::array ? read_array(entry) : read_value(entry);
    if (!done) return done;
    file_.entries_.push_back(entry);
    return Ok{};
}

Result<GgufType> GgufParser::read_type(std::string_view field) {
    const auto id = cursor_.read<uint32_t>();
    if (!id) return short_of("the value's type", field, 4);
    if (*id >= kTypes) return bad(fmt::format("value type {}; types 0 to 12 are known", *id), field, cursor_.at() - 4);
    return static_cast<GgufType>(*id);
}

Status GgufParser::read_value(GgufEntry& entry) {
    uint64_t bytes = least_bytes(entry.type);
    if (entry.type == GgufType::string) {
        const uint64_t at = cursor_.at();
        const auto length = cursor_.read<uint64_t>();
        if (!length) return short_of("the length of the text", entry.key, 8);
        const uint64_t most = entry.key.starts_with(kTemplateKey) ? kTemplateBytesMax : kTextBytesMax;
        if (*length > most)
            return bad(fmt::format("a text of {} bytes; at most {} are allowed", *length, most), entry.key, at);
        bytes = *length;
    }
    const auto payload = cursor_.take(bytes);
    if (!payload) return short_of("the value", entry.key, bytes);
    if (entry.type == GgufType::boolean && std::to_integer<uint8_t>((*payload)[0]) > 1)
        return bad(fmt::format("a bool is 0 or 1, not {}", std::to_integer<int>((*payload)[0])), entry.key,
                   entry.offset);
    entry.payload = *payload;
    return Ok{};
}

Status GgufParser::read_array(GgufEntry& entry) {
    auto element = read_type(entry.key);
    if (!element) return std::move(element).error();
    const uint64_t at = cursor_.at();
    const auto count = cursor_.read<uint64_t>();
    if (!count) return short_of("the length of the array", entry.key, 8);
    const uint64_t most = cursor_.left() / least_bytes(*element);
    if (*count > most)
        return bad(fmt::format("an array of {} items; the file has room for at most {}", *count, most), entry.key, at);
    entry.element = *element;
    entry.count = *count;
    const uint64_t start = cursor_.at();
    Status done = skip_items(entry, *element, *count, 1);
    if (!done) return done;
    entry.payload = file_.bytes_.subspan(start, cursor_.at() - start);
    return Ok{};
}

Status GgufParser::skip_items(const GgufEntry& entry, GgufType element, uint64_t count, int depth) {
    if (is_fixed(element)) {
        const auto bytes = checked_mul(count, least_bytes(element));
        if (!bytes || !cursor_.take(*bytes)) return short_of("the array", entry.key, bytes.value_or(UINT64_MAX));
        return Ok{};
    }
    if (element == GgufType::array && depth == kNestingMax)
        return bad(fmt::format("arrays nested more than {} deep", kNestingMax), entry.key, cursor_.at());
    for (uint64_t i = 0; i < count; ++i) {
        if (element == GgufType::string) {
            const uint64_t at = cursor_.at();
            const auto length = cursor_.read<uint64_t>();
            if (!length) return short_of(fmt::format("item {}", i), entry.key, 8);
            if (*length > kTextBytesMax)
                return bad(
                    fmt::format("item {} is a text of {} bytes; at most {} are allowed", i, *length, kTextBytesMax),
                    entry.key, at);
            if (!cursor_.take(*length)) return short_of(fmt::format("item {}", i), entry.key, *length);
            continue;
        }
        auto inner = read_type(entry.key);
        if (!inner) return std::move(inner).error();
        const auto inner_count = cursor_.read<uint64_t>();
        if (!inner_count) return short_of(fmt::format("item {}", i), entry.key, 8);
        if (*inner_count > cursor_.left() / least_bytes(*inner))
            return bad(fmt::format("item {} is an array of {} items, more than the file has room for", i, *inner_count),
                       entry.key, cursor_.at() - 8);
        Status done = skip_items(entry, *inner, *inner_count, depth + 1);
        if (!done) return done;
    }
    return Ok{};
}

Status GgufParser::index_keys() {
    auto& order = file_.entries_by_key_;
    order.resize(file_.entries_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](uint32_t i) { return file_.entries_[i].key; });
    const auto twice = std::ranges::adjacent_find(order, {}, [&](uint32_t i) { return file_.entries_[i].key; });
    if (twice == order.end()) return Ok{};
    const GgufEntry& second = file_.entries_[*(twice + 1)];
    return bad(fmt::format("the key is there twice, first at byte {}", file_.entries_[*twice].offset), second.key,
               second.offset);
}

Status GgufParser::read_alignment() {
    const GgufEntry* const entry = file_.find("general.alignment");
    if (entry == nullptr) return Ok{};
    if (entry->type != GgufType::u32)
        return bad(fmt::format("expected u32, found {}", gguf_type_name(entry->type)), entry->key, entry->offset);
    ByteCursor value(entry->payload);
    const uint64_t alignment = value.read<uint32_t>().value_or(0);
    if (!std::has_single_bit(alignment) || alignment < 8 || alignment > kAlignmentMax)
        return bad(fmt::format("{} is no power of two from 8 to {}", alignment, kAlignmentMax), entry->key,
                   entry->offset);
    file_.alignment_ = alignment;
    return Ok{};
}

Status GgufParser::refuse_splits() {
    const GgufEntry* const entry = file_.find("split.count");
    if (entry == nullptr) return Ok{};
    auto count = file_.count("split.count");
    if (!count) return std::move(count).error();
    if (**count <= 1) return Ok{};
    return file_.error(ErrorCode::unsupported,
                       fmt::format("this is one of {} files of a split model, which are not read; join them into one "
                                   "file first (gguf-split --merge)",
                                   **count),
                       entry->key, entry->offset);
}

}  // namespace cadans::model
