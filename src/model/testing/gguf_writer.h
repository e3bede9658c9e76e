// Writes small GGUF files for tests, right ones and wrong ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/gguf.h"

namespace cadans::model::testing {

using Bytes = std::vector<std::byte>;

/// Puts numbers and texts one after the other, as the format has them.
class ByteWriter {
  public:
    template <class Number>
    ByteWriter& put(Number number) {
        const auto* const at = reinterpret_cast<const std::byte*>(&number);
        bytes.insert(bytes.end(), at, at + sizeof(number));
        return *this;
    }
    ByteWriter& put_bytes(std::span<const std::byte> part) {
        bytes.insert(bytes.end(), part.begin(), part.end());
        return *this;
    }
    ByteWriter& put_text(std::string_view text) {
        put(static_cast<uint64_t>(text.size()));
        return put_bytes(std::as_bytes(std::span(text)));
    }

    Bytes bytes;
};

/// A file in the making. Everything is public so that a test can make one thing wrong.
struct GgufWriter {
    struct Entry {
        std::string key;
        uint32_t type = 0;
        Bytes value;
    };
    struct Tensor {
        std::string name;
        std::vector<uint64_t> dims;
        uint32_t type = 0;
        Bytes data;
        std::optional<uint64_t> offset = {};  ///< instead of where the data lies
    };

    std::string magic = "GGUF";
    uint32_t version = 3;
    uint64_t alignment = 32;
    std::optional<uint64_t> entry_count = {};   ///< instead of the true one
    std::optional<uint64_t> tensor_count = {};  ///< instead of the true one
    std::vector<Entry> entries;
    std::vector<Tensor> tensors;

    template <class Number>
    GgufWriter& scalar(std::string key, GgufType type, Number number) {
        entries.push_back({std::move(key), static_cast<uint32_t>(type), ByteWriter().put(number).bytes});
        return *this;
    }
    GgufWriter& u32(std::string key, uint32_t number) { return scalar(std::move(key), GgufType::u32, number); }
    GgufWriter& f32(std::string key, float number) { return scalar(std::move(key), GgufType::f32, number); }
    GgufWriter& flag(std::string key, bool value) {
        return scalar(std::move(key), GgufType::boolean, static_cast<uint8_t>(value));
    }
    GgufWriter& text(std::string key, std::string_view value) {
        entries.push_back(
            {std::move(key), static_cast<uint32_t>(GgufType::string), ByteWriter().put_text(value).bytes});
        return *this;
    }
    template <class Number>
    GgufWriter& array(std::string key, GgufType element, const std::vector<Number>& items) {
        ByteWriter value;
        value.put(static_cast<uint32_t>(element)).put(static_cast<uint64_t>(items.size()));
        for (const Number& item : items) value.put(item);
        entries.push_back({std::move(key), static_cast<uint32_t>(GgufType::array), std::move(value.bytes)});
        return *this;
    }
    GgufWriter& texts(std::string key, const std::vector<std::string>& items) {
        ByteWriter value;
        value.put(static_cast<uint32_t>(GgufType::string)).put(static_cast<uint64_t>(items.size()));
        for (const std::string& item : items) value.put_text(item);
        entries.push_back({std::move(key), static_cast<uint32_t>(GgufType::array), std::move(value.bytes)});
        return *this;
    }
    GgufWriter& tensor(std::string name, std::vector<uint64_t> dims, TensorType type, Bytes data) {
        tensors.push_back({std::move(name), std::move(dims), static_cast<uint32_t>(type), std::move(data)});
        return *this;
    }

    /// The entry with that key, to change or replace it.
    Entry& entry(std::string_view key) {
        for (Entry& found : entries)
            if (found.key == key) return found;
        entries.push_back({std::string(key), 0, {}});
        return entries.back();
    }
    void remove(std::string_view key) {
        std::erase_if(entries, [&](const Entry& found) { return found.key == key; });
    }
    void replace_u32(std::string_view key, uint32_t number) {
        Entry& found = entry(key);
        found.type = static_cast<uint32_t>(GgufType::u32);
        found.value = ByteWriter().put(number).bytes;
    }
    Tensor* find_tensor(std::string_view name) {
        for (Tensor& found : tensors)
            if (found.name == name) return &found;
        return nullptr;
    }
    void remove_tensor(std::string_view name) {
        std::erase_if(tensors, [&](const Tensor& found) { return found.name == name; });
    }

    Bytes bytes() const {
        ByteWriter out;
        out.put_bytes(std::as_bytes(std::span(magic)));
        out.put(version).put(tensor_count.value_or(tensors.size())).put(entry_count.value_or(entries.size()));
        for (const Entry& each : entries) out.put_text(each.key).put(each.type).put_bytes(each.value);
        uint64_t offset = 0;
        for (const Tensor& each : tensors) {
            out.put_text(each.name).put(static_cast<uint32_t>(each.dims.size()));
            for (const uint64_t dim : each.dims) out.put(dim);
            out.put(each.type).put(each.offset.value_or(offset));
            offset = padded(offset + each.data.size());
        }
        out.bytes.resize(padded(out.bytes.size()));
        const size_t start = out.bytes.size();
        for (const Tensor& each : tensors) {
            out.bytes.resize(start + padded(out.bytes.size() - start));
            out.put_bytes(each.data);
        }
        return out.bytes;
    }

  private:
    uint64_t padded(uint64_t n) const { return (n + alignment - 1) / alignment * alignment; }
};

}  // namespace cadans::model::testing
