// The tensors a model needs, and the check that a file has them and no others.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "model/byte_cursor.h"
#include "model/spec_reader.h"

namespace cadans::model {
namespace {

/// Written by some converters, implied by the spec: reading them would change nothing.
bool is_redundant(std::string_view name) noexcept {
    return name.ends_with(".attn_rot_embd") || name.ends_with(".rotary_emb.inv_freq");
}

bool is_vector_type(TensorType type) noexcept {
    return type == TensorType::f32 || type == TensorType::f16 || type == TensorType::bf16;
}

void expect_layer(const ModelSpec& spec, uint32_t layer, std::vector<ExpectedTensor>& all) {
    const auto name = [&](std::string_view part) { return fmt::format("blk.{}.{}", layer, part); };
    const auto vector = [&](std::string_view part, uint64_t n) { all.push_back({name(part), n, 0}); };
    const auto matrix = [&](std::string_view part, uint64_t in, uint64_t out) { all.push_back({name(part), in, out}); };
    vector("attn_norm.weight", spec.width);
    matrix("attn_q.weight", spec.width, spec.q_width());
    matrix("attn_k.weight", spec.width, spec.kv_width());
    matrix("attn_v.weight", spec.width, spec.kv_width());
    if (spec.qkv_bias) {
        vector("attn_q.bias", spec.q_width());
        vector("attn_k.bias", spec.kv_width());
        vector("attn_v.bias", spec.kv_width());
    }
    if (spec.qk_norm) {
        vector("attn_q_norm.weight", spec.head_dim);
        vector("attn_k_norm.weight", spec.head_dim);
    }
    matrix("attn_output.weight", spec.q_width(), spec.width);
    if (spec.post_norms) vector("post_attention_norm.weight", spec.width);
    vector("ffn_norm.weight", spec.width);
    matrix("ffn_gate.weight", spec.width, spec.ffn_width);
    matrix("ffn_up.weight", spec.width, spec.ffn_width);
    matrix("ffn_down.weight", spec.ffn_width, spec.width);
    if (spec.post_norms) vector("post_ffw_norm.weight", spec.width);
}

}  // namespace

std::string printable(std::string_view text) {
    std::string clean(text.substr(0, 200));
    const bool utf8 = is_utf8(clean);
    for (char& c : clean) {
        const auto byte = static_cast<uint8_t>(c);
        if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !utf8)) c = '?';
    }
    return clean;
}

std::vector<ExpectedTensor> expected_tensors(const ModelSpec& spec) {
    std::vector<ExpectedTensor> all;
    all.push_back({"token_embd.weight", spec.width, spec.vocab, true});
    if (spec.rope_factors) all.push_back({"rope_freqs.weight", spec.rope_dims / 2, 0});
    for (uint32_t i = 0; i < spec.n_layers; ++i) expect_layer(spec, i, all);
    all.push_back({"output_norm.weight", spec.width, 0});
    if (!spec.tied_head) all.push_back({"output.weight", spec.width, spec.vocab, true});
    return all;
}

Status SpecReader::read_tensors() {
    Status vocab = read_vocab_size();
    if (!vocab) return vocab;
    spec_.tied_head = file_.tensor("output.weight") == nullptr;
    spec_.rope_factors = spec_.family == Family::llama && file_.tensor("rope_freqs.weight") != nullptr;
    // qwen2 always has these biases; some llama-shaped models do as well.
    spec_.qkv_bias = spec_.family == Family::qwen2 || file_.tensor("blk.0.attn_q.bias") != nullptr;
    for (const ExpectedTensor& expected : expected_tensors(spec_)) {
        Status fits = check_tensor(expected);
        if (!fits) return fits;
    }
    return refuse_unknown_tensors();
}

Status SpecReader::read_vocab_size() {
    const GgufEntry* const tokens = file_.find("tokenizer.ggml.tokens");
    if (tokens == nullptr) return missing("tokenizer.ggml.tokens");
    if (tokens->type != GgufType::array || tokens->element != GgufType::string)
        return file_.error(ErrorCode::bad_input, "expected an array of string", tokens->key, tokens->offset);
    if (tokens->count == 0 || tokens->count > 4'194'304)
        return file_.error(ErrorCode::bad_input, fmt::format("{} tokens; 1 to 4194304 are supported", tokens->count),
                           tokens->key, tokens->offset);
    spec_.vocab = static_cast<uint32_t>(tokens->count);
    return Ok{};
}

Status SpecReader::check_tensor(const ExpectedTensor& expected) const {
    const GgufTensor* const found = file_.tensor(expected.name);
    const std::string shape = expected.outputs == 0 ? fmt::format("{}", expected.inputs)
                                                    : fmt::format("{} x {}", expected.inputs, expected.outputs);
    if (found == nullptr)
        return file_.error(ErrorCode::bad_input, fmt::format("the tensor is missing; expected one of {}", shape),
                           expected.name, file_.data_offset());
    const uint64_t outputs = std::max<uint64_t>(expected.outputs, 1);
    const bool right_rows = expected.rows_may_exceed ? found->dims[1] >= outputs : found->dims[1] == outputs;
    if (found->dims[0] != expected.inputs || !right_rows || found->dims[2] != 1 || found->dims[3] != 1)
        return file_.error(ErrorCode::bad_input,
                           fmt::format("expected {}{}, found {}", shape,
                                       expected.rows_may_exceed ? " or more rows" : "", format_dims(*found)),
                           expected.name, found->record_offset);
    const TensorTypeInfo& type = tensor_type_info(found->type);
    if (!type.runnable)
        return file_.error(
            ErrorCode::unsupported,
            fmt::format("weights of type {} are not supported; supported are {}", type.name, runnable_tensor_types()),
            expected.name, found->record_offset);
    if (expected.outputs == 0 && !is_vector_type(found->type))
        return file_.error(ErrorCode::unsupported,
                           fmt::format("expected F32, F16 or BF16 for a vector, found {}", type.name), expected.name,
                           found->record_offset);
    return Ok{};
}

Status SpecReader::refuse_unknown_tensors() const {
    const auto all = expected_tensors(spec_);
    std::unordered_set<std::string_view> known;
    for (const ExpectedTensor& each : all) known.insert(each.name);
    for (const GgufTensor& tensor : file_.tensors()) {
        if (known.contains(tensor.name) || is_redundant(tensor.name)) continue;
        return file_.error(ErrorCode::unsupported,
                           fmt::format("a {} model with this tensor is not supported: leaving it out would change the "
                                       "answers",
                                       spec_.architecture),
                           printable(tensor.name), tensor.record_offset);
    }
    return Ok{};
}

Result<std::optional<uint64_t>> SpecReader::count_in(std::string_view name, uint64_t least, uint64_t most) const {
    auto value = file_.count(key(name));
    if (!value || !*value) return value;
    if (**value < least || **value > most)
        return bad(fmt::format("{} is outside {} to {}", **value, least, most), name);
    return value;
}

Result<std::optional<double>> SpecReader::number_in(std::string_view name, double least, double most) const {
    auto value = file_.number(key(name));
    if (!value || !*value) return value;
    if (!(**value >= least && **value <= most))
        return bad(fmt::format("{} is outside {} to {}", **value, least, most), name);
    return value;
}

Result<std::optional<uint32_t>> SpecReader::same_for_all_layers(std::string_view name, uint64_t least,
                                                                uint64_t most) const {
    auto values = file_.layer_counts(key(name), spec_.n_layers);
    if (!values) return std::move(values).error();
    if (!*values) return std::optional<uint32_t>();
    const uint64_t first = (*values)->front();
    if (std::ranges::any_of(**values, [&](uint64_t value) { return value != first; }))
        return unsupported_here("it differs from layer to layer, which is not supported", name);
    if (first < least || first > most) return bad(fmt::format("{} is outside {} to {}", first, least, most), name);
    return std::optional(static_cast<uint32_t>(first));
}

uint64_t SpecReader::offset_of(std::string_view name) const {
    const GgufEntry* const entry = file_.find(key(name));
    return entry == nullptr ? 0 : entry->offset;
}

Error SpecReader::missing(std::string_view full_key) const {
    return file_.error(ErrorCode::bad_input, "the key is missing", full_key, 0);
}

Error SpecReader::bad(std::string_view message, std::string_view name) const {
    return file_.error(ErrorCode::bad_input, message, key(name), offset_of(name));
}

Error SpecReader::unsupported_here(std::string_view message, std::string_view name) const {
    return file_.error(ErrorCode::unsupported, message, key(name), offset_of(name));
}

}  // namespace cadans::model
