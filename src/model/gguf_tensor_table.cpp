// The tensor table: the part of the head that points into the rest of the file.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "model/gguf_parser.h"

namespace cadans::model {
namespace {

constexpr uint64_t kNameBytesMax = 256;
constexpr uint64_t kElementsMax = uint64_t{1} << 48;

}  // namespace

Status GgufParser::read_tensor_table() {
    file_.tensors_.reserve(n_tensors_);
    tensor_starts_.reserve(n_tensors_);
    tensor_sizes_.reserve(n_tensors_);
    for (uint64_t i = 0; i < n_tensors_; ++i) {
        auto tensor = read_tensor(i);
        if (!tensor) return std::move(tensor).error();
        file_.tensors_.push_back(*tensor);
    }
    return Ok{};
}

Result<GgufTensor> GgufParser::read_tensor(uint64_t number) {
    const std::string field = fmt::format("tensor {}", number);
    GgufTensor tensor;
    tensor.record_offset = cursor_.at();
    const auto length = cursor_.read<uint64_t>();
    if (!length) return short_of("the length of the name", field, 8);
    if (*length == 0 || *length > kNameBytesMax)
        return bad(fmt::format("a name of {} bytes; expected 1 to {}", *length, kNameBytesMax), field,
                   tensor.record_offset);
    const auto name = cursor_.take(*length);
    if (!name) return short_of("the name", field, *length);
    tensor.name = as_text(*name);
    if (tensor.name.find('\0') != std::string_view::npos || !is_utf8(tensor.name))
        return bad("the name is not valid UTF-8 without NUL", field, tensor.record_offset);

    Status dims = read_dims(tensor);
    if (!dims) return std::move(dims).error();
    const uint64_t type_at = cursor_.at();
    const auto type = cursor_.read<uint32_t>();
    if (!type) return short_of("the type", tensor.name, 4);
    const TensorTypeInfo* const info = find_tensor_type(*type);
    if (info == nullptr)
        return file_.error(ErrorCode::unsupported,
                           fmt::format("the tensor has {}, which is not known; supported are {}",
                                       tensor_type_name(*type), runnable_tensor_types()),
                           tensor.name, type_at);
    tensor.type = info->type;
    auto size = size_of(tensor);
    if (!size) return std::move(size).error();
    const uint64_t start_at = cursor_.at();
    const auto start = cursor_.read<uint64_t>();
    if (!start) return short_of("the offset", tensor.name, 8);
    if (*start % file_.alignment_ != 0)
        return bad(fmt::format("its offset {} is no multiple of the alignment {}", *start, file_.alignment_),
                   tensor.name, start_at);
    tensor_starts_.push_back(*start);
    tensor_sizes_.push_back(*size);
    return tensor;
}

Status GgufParser::read_dims(GgufTensor& tensor) {
    const auto n_dims = cursor_.read<uint32_t>();
    if (!n_dims) return short_of("the number of dimensions", tensor.name, 4);
    if (*n_dims == 0 || *n_dims > tensor.dims.size())
        return bad(fmt::format("{} dimensions; expected 1 to {}", *n_dims, tensor.dims.size()), tensor.name,
                   cursor_.at() - 4);
    tensor.n_dims = *n_dims;
    uint64_t elements = 1;
    for (uint32_t d = 0; d < *n_dims; ++d) {
        const auto dim = cursor_.read<uint64_t>();
        if (!dim) return short_of(fmt::format("dimension {}", d), tensor.name, 8);
        if (*dim == 0) return bad(fmt::format("dimension {} is 0", d), tensor.name, cursor_.at() - 8);
        const auto product = checked_mul(elements, *dim);
        if (!product || *product >= kElementsMax)
            return bad(fmt::format("2^48 numbers or more at dimension {} of {}", d, *dim), tensor.name,
                       cursor_.at() - 8);
        elements = *product;
        tensor.dims[d] = *dim;
    }
    return Ok{};
}

Result<uint64_t> GgufParser::size_of(const GgufTensor& tensor) {
    const TensorTypeInfo& info = tensor_type_info(tensor.type);
    if (tensor.dims[0] % info.block_weights != 0)
        return bad(fmt::format("rows of {} numbers do not divide into {} blocks of {}", tensor.dims[0], info.name,
                               info.block_weights),
                   tensor.name, tensor.record_offset);
    const auto bytes = checked_mul(tensor.elements() / info.block_weights, info.block_bytes);
    if (!bytes) return bad("its size does not fit 64 bits", tensor.name, tensor.record_offset);
    return *bytes;
}

Status GgufParser::index_tensors() {
    auto& order = file_.tensors_by_name_;
    order.resize(file_.tensors_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](uint32_t i) { return file_.tensors_[i].name; });
    const auto twice = std::ranges::adjacent_find(order, {}, [&](uint32_t i) { return file_.tensors_[i].name; });
    if (twice == order.end()) return Ok{};
    const GgufTensor& second = file_.tensors_[*(twice + 1)];
    return bad(fmt::format("the tensor is there twice, first at byte {}", file_.tensors_[*twice].record_offset),
               second.name, second.record_offset);
}

Status GgufParser::place_tensors() {
    const uint64_t head = cursor_.at();
    const uint64_t padding = (file_.alignment_ - head % file_.alignment_) % file_.alignment_;
    file_.data_offset_ = head + padding;
    if (file_.tensors_.empty()) return Ok{};
    if (!cursor_.take(padding)) return short_of("the padding before the data", "tensor data", padding);
    const uint64_t room = cursor_.left();
    for (size_t i = 0; i < file_.tensors_.size(); ++i) {
        GgufTensor& tensor = file_.tensors_[i];
        const auto end = checked_add(tensor_starts_[i], tensor_sizes_[i]);
        if (!end || *end > room)
            return bad(
                fmt::format("its {} bytes from {} on end beyond the {} bytes of data that the file has; the file is "
                            "cut short or corrupt",
                            tensor_sizes_[i], tensor_starts_[i], room),
                tensor.name, tensor.record_offset);
        tensor.offset = file_.data_offset_ + tensor_starts_[i];
        tensor.payload = file_.bytes_.subspan(tensor.offset, tensor_sizes_[i]);
    }
    return Ok{};
}

Status GgufParser::refuse_overlaps() {
    std::vector<uint32_t> order(file_.tensors_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](uint32_t i) { return file_.tensors_[i].offset; });
    for (size_t i = 1; i < order.size(); ++i) {
        const GgufTensor& first = file_.tensors_[order[i - 1]];
        const GgufTensor& second = file_.tensors_[order[i]];
        if (second.offset < first.offset + first.payload.size())
            return bad(fmt::format("its bytes overlap those of {}", first.name), second.name, second.record_offset);
    }
    return Ok{};
}

}  // namespace cadans::model
