// Damages GGUF files in every way that a seed can choose: blindly, and knowing what the fields mean.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string>

#include "base/random.h"
#include "model/testing/gguf_writer.h"

namespace cadans::model::testing {

/// The same seed does the same damage. One thread.
class GgufMutator {
  public:
    explicit GgufMutator(uint64_t seed) : state_(mix64(seed)) {}

    /// 1 to 4 changes of bytes, most of them in the first `head` bytes, where the fields are.
    Bytes raw(Bytes bytes, size_t head) {
        for (uint64_t n = 1 + below(4); n > 0 && !bytes.empty(); --n) damage(bytes, head);
        return bytes;
    }

    /// 1 to 3 changes of fields.
    Bytes structured(GgufWriter file) {
        for (uint64_t n = 1 + below(3); n > 0; --n) {
            if (below(2) == 0 && !file.tensors.empty())
                damage_tensor(file);
            else
                damage_entry(file);
        }
        return file.bytes();
    }

  private:
    uint64_t next() { return state_ = mix64(state_); }
    uint64_t below(uint64_t n) { return next() % n; }

    /// Numbers at which sums wrap, casts narrow and divisions fail.
    uint64_t interesting() {
        constexpr auto kNumbers = std::to_array<uint64_t>({0,
                                                           1,
                                                           2,
                                                           3,
                                                           4,
                                                           7,
                                                           8,
                                                           15,
                                                           16,
                                                           31,
                                                           32,
                                                           33,
                                                           63,
                                                           64,
                                                           127,
                                                           128,
                                                           255,
                                                           256,
                                                           1023,
                                                           65'535,
                                                           65'536,
                                                           0x7FFFFFFF,
                                                           0x80000000,
                                                           0xFFFFFFFE,
                                                           0xFFFFFFFF,
                                                           uint64_t{1} << 32,
                                                           uint64_t{1} << 47,
                                                           uint64_t{1} << 48,
                                                           uint64_t{1} << 62,
                                                           uint64_t{1} << 63,
                                                           UINT64_MAX / 34,
                                                           UINT64_MAX - 31,
                                                           UINT64_MAX - 7,
                                                           UINT64_MAX});
        return below(4) == 0 ? next() >> below(64) : kNumbers[below(kNumbers.size())];
    }

    template <class Number>
    void overwrite(Bytes& bytes, size_t at) {
        const auto number = static_cast<Number>(interesting());
        std::memcpy(bytes.data() + at, &number, std::min(sizeof number, bytes.size() - at));
    }

    void damage(Bytes& bytes, size_t head) {
        const size_t reach = below(8) == 0 ? bytes.size() : std::min(head, bytes.size());
        const size_t at = below(std::max<size_t>(reach, 1));
        switch (below(8)) {
            case 0:
                bytes[at] ^= static_cast<std::byte>(1U << below(8));
                break;
            case 1:
                bytes[at] = static_cast<std::byte>(next());
                break;
            case 2:
                overwrite<uint16_t>(bytes, at);
                break;
            case 3:
                overwrite<uint32_t>(bytes, at);
                break;
            case 4:
                overwrite<uint64_t>(bytes, at);
                break;
            case 5:
                bytes.resize(below(8) == 0 ? at : bytes.size() - below(std::min<size_t>(bytes.size(), 64)));
                break;
            case 6: {
                const size_t n = std::min<size_t>(1 + below(32), bytes.size() - at);
                bytes.erase(bytes.begin() + static_cast<ptrdiff_t>(at), bytes.begin() + static_cast<ptrdiff_t>(at + n));
                break;
            }
            default: {
                const size_t n = std::min<size_t>(1 + below(32), bytes.size() - at);
                const Bytes part(bytes.begin() + static_cast<ptrdiff_t>(at),
                                 bytes.begin() + static_cast<ptrdiff_t>(at + n));
                bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(at), part.begin(), part.end());
            }
        }
    }

    void damage_entry(GgufWriter& file) {
        if (file.entries.empty()) return;
        auto& entry = file.entries[below(file.entries.size())];
        const bool array = entry.type == static_cast<uint32_t>(GgufType::array);
        switch (below(10)) {
            case 0:
                entry.type = static_cast<uint32_t>(below(16));
                break;
            case 1:
                file.entries.erase(file.entries.begin() + (&entry - file.entries.data()));
                break;
            case 2:
                file.entries.push_back(GgufWriter::Entry(entry));
                break;
            case 3:
                std::swap(entry.value, file.entries[below(file.entries.size())].value);
                break;
            case 4:
                entry.key.assign(below(3) * below(600), 'k');
                break;
            case 5:
                file.entry_count = interesting();
                break;
            case 6:
                entry.value.resize(below(entry.value.size() + 9));
                break;
            case 7:
                number_in(entry.value, 0);
                break;  // a scalar, a length, an array's item type
            case 8:
                number_in(entry.value, array ? 4 : 0);
                break;  // an array's length
            default:
                number_in(entry.value, array ? 12 + below(entry.value.size()) : 8);
                break;  // its items, a text
        }
    }

    void number_in(Bytes& value, size_t at) {
        if (at >= value.size()) at = 0;
        if (value.empty()) return;
        const uint64_t number = interesting();
        const size_t width = size_t{1} << below(4);
        std::memcpy(value.data() + at, &number, std::min(width, value.size() - at));
    }

    void damage_tensor(GgufWriter& file) {
        auto& tensor = file.tensors[below(file.tensors.size())];
        switch (below(10)) {
            case 0:
                tensor.type = static_cast<uint32_t>(below(4) == 0 ? interesting() : below(44));
                break;
            case 1:
                file.tensors.erase(file.tensors.begin() + (&tensor - file.tensors.data()));
                break;
            case 2:
                file.tensors.push_back(GgufWriter::Tensor(tensor));
                break;
            case 3:
                tensor.dims.resize(below(6), interesting());
                break;
            case 4:
                tensor.dims.resize(std::max<size_t>(tensor.dims.size(), 1)), tensor.dims[0] = interesting();
                break;
            case 5:
                tensor.dims.resize(2, 1), tensor.dims[1] = interesting();
                break;
            case 6:
                tensor.offset = interesting() & (below(2) == 0 ? ~uint64_t{31} : ~uint64_t{0});
                break;
            case 7:
                file.tensor_count = interesting();
                break;
            case 8:
                tensor.data.resize(below(tensor.data.size() + 65));
                break;
            default:
                std::swap(tensor.name, file.tensors[below(file.tensors.size())].name);
                break;
        }
    }

    uint64_t state_;
};

/// A parsed file in a form that can be changed and written again.
inline GgufWriter editable(const GgufFile& file) {
    GgufWriter copy;
    copy.version = file.version();
    copy.alignment = file.alignment();
    for (const GgufEntry& entry : file.metadata()) {
        ByteWriter value;
        if (entry.type == GgufType::string) value.put(uint64_t{entry.payload.size()});
        if (entry.type == GgufType::array) value.put(static_cast<uint32_t>(entry.element)).put(entry.count);
        value.put_bytes(entry.payload);
        copy.entries.push_back({std::string(entry.key), static_cast<uint32_t>(entry.type), std::move(value.bytes)});
    }
    for (const GgufTensor& tensor : file.tensors())
        copy.tensor(std::string(tensor.name), {tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims}, tensor.type,
                    {tensor.payload.begin(), tensor.payload.end()});
    return copy;
}

}  // namespace cadans::model::testing
