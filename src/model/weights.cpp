#include "model/weights.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "base/units.h"
#include "model/finite_weights.h"
#include "model/memory.h"

namespace cadans::model {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{512} << 10;  // small enough to share evenly and to report often

uint64_t align64(uint64_t n) noexcept { return (n + 63) / 64 * 64; }

/// A tensor of the file and its place in the arena.
struct Placement {
    const GgufTensor* source;
    kernels::WeightType type;
    uint64_t rows;  ///< that are used; 1 for a vector
    uint64_t cols;
    bool vector;
    uint64_t offset;  ///< in the arena
};

/// Panels [begin, end) of one placement: what a thread packs at a time.
struct Chunk {
    uint32_t placement;
    uint64_t begin, end;
};

}  // namespace

/// One load. The steps run in order; a failed one leaves the half-made model to its destructor.
class ModelLoader {
  public:
    ModelLoader(const GgufFile& file, ThreadPool& pool, const OnLoadProgress& progress)
        : file_(file), pool_(pool), progress_(progress) {}

    Result<std::unique_ptr<Model>> load(ModelSpec spec);

  private:
    void place_tensors();
    Status map_arena();
    void cut_chunks();
    Status pack_matrices();
    uint64_t pack(const Chunk& chunk);
    Status copy_vectors();
    Status refuse_not_finite() const;
    void connect();
    void connect_layer(uint32_t i);

    std::byte* at(const Placement& place) const { return model_->arena_ + place.offset; }
    const Placement& place(const std::string& name) const { return placements_[by_name_.at(name)]; }
    PackedMatrix matrix(const std::string& name) const;
    std::span<const float> vector(const std::string& name) const;

    const GgufFile& file_;
    ThreadPool& pool_;
    const OnLoadProgress& progress_;
    std::unique_ptr<Model> model_;
    std::vector<Placement> placements_;
    std::unordered_map<std::string, size_t> by_name_;
    std::vector<Chunk> chunks_;
    std::vector<std::atomic<uint64_t>> not_finite_;  ///< per placement
    uint64_t total_bytes_ = 0;
};

Result<std::unique_ptr<Model>> ModelLoader::load(ModelSpec spec) {
    Status fits = check_fits(estimate_memory(spec, file_), available_memory(), file_.name());
    if (!fits) return std::move(fits).error();
    model_.reset(new Model());
    model_->spec_ = std::move(spec);
    place_tensors();
    Status mapped = map_arena();
    if (!mapped) return std::move(mapped).error();
    cut_chunks();
    not_finite_ = std::vector<std::atomic<uint64_t>>(placements_.size());
    Status packed = pack_matrices();
    if (!packed) return std::move(packed).error();
    Status copied = copy_vectors();
    if (!copied) return std::move(copied).error();
    Status finite = refuse_not_finite();
    if (!finite) return std::move(finite).error();
    connect();
    return std::move(model_);
}

void ModelLoader::place_tensors() {
    uint64_t offset = 0;
    for (const ExpectedTensor& expected : expected_tensors(model_->spec_)) {
        const GgufTensor* const source = file_.tensor(expected.name);
        check(source != nullptr, "read_spec saw every expected tensor in this file");
        const auto type = kernels::type_from_gguf(static_cast<uint32_t>(source->type));
        check(type.has_value(), "read_spec saw only types that can be computed with");
        const bool is_vector = expected.outputs == 0;
        const Placement place{source, *type, is_vector ? 1 : expected.outputs, expected.inputs, is_vector, offset};
        offset +=
            is_vector ? align64(place.cols * sizeof(float)) : kernels::packed_bytes(*type, place.rows, place.cols);
        by_name_.emplace(expected.name, placements_.size());
        placements_.push_back(place);
        total_bytes_ += source->payload.size();
    }
    model_->arena_bytes_ = offset;
}

Status ModelLoader::map_arena() {
    void* const arena =
        ::mmap(nullptr, model_->arena_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED)
        return Error{ErrorCode::no_memory,
                     fmt::format("{}: cannot get {} of memory for the weights: {}", file_.name(),
                                 format_size(model_->arena_bytes_), std::strerror(errno)),
                     "memory"};
    // Every step walks through all of it: with small pages the walk misses the page tables' cache. Best effort.
    ::madvise(arena, model_->arena_bytes_, MADV_HUGEPAGE);
    model_->arena_ = static_cast<std::byte*>(arena);
    return Ok{};
}

void ModelLoader::cut_chunks() {
    for (uint32_t i = 0; i < placements_.size(); ++i) {
        const Placement& place = placements_[i];
        if (place.vector) continue;
        const uint64_t panels = (place.rows + kernels::kPanelRows - 1) / kernels::kPanelRows;
        const uint64_t panel = kernels::kPanelRows * place.source->row_bytes();
        const uint64_t step = std::max<uint64_t>(1, kChunkBytes / panel);
        for (uint64_t begin = 0; begin < panels; begin += step)
            chunks_.push_back({i, begin, std::min(begin + step, panels)});
    }
    // In the order of the file, so that a cold disk reads forward.
    std::ranges::stable_sort(chunks_, {},
                             [&](const Chunk& chunk) { return placements_[chunk.placement].source->offset; });
}

Status ModelLoader::pack_matrices() {
    std::atomic<size_t> next{0};
    std::atomic<uint64_t> done{0};
    std::atomic<bool> stop{false};
    pool_.run([&](uint32_t thread, uint32_t) {
        while (!stop.load(std::memory_order_relaxed)) {
            const size_t i = next.fetch_add(1, std::memory_order_relaxed);
            if (i >= chunks_.size()) return;
            const uint64_t bytes = pack(chunks_[i]);
            const uint64_t so_far = done.fetch_add(bytes, std::memory_order_relaxed) + bytes;
            // The caller is thread 0; only it may be called back.
            if (thread == 0 && progress_ && !progress_({so_far, total_bytes_})) stop.store(true);
        }
    });
    if (stop || (progress_ && !progress_({total_bytes_, total_bytes_})))
        return Error{ErrorCode::cancelled, fmt::format("loading {} was stopped", file_.name()), {}};
    return Ok{};
}

uint64_t ModelLoader::pack(const Chunk& chunk) {
    const Placement& place = placements_[chunk.placement];
    const uint64_t row_bytes = place.source->row_bytes();
    const uint64_t out_bytes = kernels::panel_bytes(place.type, place.cols);
    const uint64_t first_row = chunk.begin * kernels::kPanelRows;
    const uint64_t end_row = std::min(chunk.end * kernels::kPanelRows, place.rows);
    const auto bytes = place.source->payload.subspan(first_row * row_bytes, (end_row - first_row) * row_bytes);
    if (const uint64_t bad = count_not_finite(place.type, bytes)) not_finite_[chunk.placement] += bad;
    for (uint64_t panel = chunk.begin; panel < chunk.end; ++panel) {
        const uint64_t row = panel * kernels::kPanelRows;
        kernels::pack_panel(place.type, place.source->payload.data() + row * row_bytes, row_bytes,
                            std::min<uint64_t>(kernels::kPanelRows, place.rows - row), place.cols,
                            at(place) + panel * out_bytes);
    }
    file_.release(bytes);
    return bytes.size();
}

Status ModelLoader::copy_vectors() {
    for (size_t i = 0; i < placements_.size(); ++i) {
        const Placement& place = placements_[i];
        if (!place.vector) continue;
        not_finite_[i] += count_not_finite(place.type, place.source->payload);
        kernels::dequantize_row(place.type, place.source->payload.data(), place.cols,
                                reinterpret_cast<float*>(at(place)));
    }
    if (!model_->spec_.rope_factors) return Ok{};
    for (const float factor : vector("rope_freqs.weight"))
        if (!(factor > 0.0F))
            return file_.error(ErrorCode::bad_input, fmt::format("a rope factor of {}; expected more than 0", factor),
                               "rope_freqs.weight", place("rope_freqs.weight").source->offset);
    return Ok{};
}

Status ModelLoader::refuse_not_finite() const {
    for (size_t i = 0; i < placements_.size(); ++i) {
        if (not_finite_[i] == 0) continue;
        const GgufTensor& source = *placements_[i].source;
        return file_.error(
            ErrorCode::bad_input,
            fmt::format("{} of its numbers are infinite or not a number; the file is corrupt", not_finite_[i].load()),
            source.name, source.offset);
    }
    return Ok{};
}

PackedMatrix ModelLoader::matrix(const std::string& name) const {
    const Placement& found = place(name);
    return {at(found), found.rows, found.cols, found.type};
}

std::span<const float> ModelLoader::vector(const std::string& name) const {
    const Placement& found = place(name);
    return {reinterpret_cast<const float*>(at(found)), found.cols};
}

void ModelLoader::connect() {
    model_->embedding_ = matrix("token_embd.weight");
    model_->head_ = model_->spec_.tied_head ? model_->embedding_ : matrix("output.weight");
    model_->output_norm_ = vector("output_norm.weight");
    if (model_->spec_.rope_factors) model_->rope_factors_ = vector("rope_freqs.weight");
    model_->layers_.resize(model_->spec_.n_layers);
    for (uint32_t i = 0; i < model_->spec_.n_layers; ++i) connect_layer(i);
}

void ModelLoader::connect_layer(uint32_t i) {
    const ModelSpec& spec = model_->spec_;
    LayerWeights& layer = model_->layers_[i];
    const auto name = [&](std::string_view part) { return fmt::format("blk.{}.{}", i, part); };
    layer.attn_norm = vector(name("attn_norm.weight"));

    // q, k and v lie one after the other and are whole panels each (a head is a multiple of 16 rows), so
    // where their types agree they are one matrix already.
    const PackedMatrix q = matrix(name("attn_q.weight"));
    const PackedMatrix k = matrix(name("attn_k.weight"));
    const PackedMatrix v = matrix(name("attn_v.weight"));
    uint32_t row = 0;
    for (const PackedMatrix& each : {q, k, v}) {
        if (!layer.qkv.empty() && layer.qkv.back().matrix.type == each.type)
            layer.qkv.back().matrix.rows += each.rows;
        else
            layer.qkv.push_back({each, row});
        row += static_cast<uint32_t>(each.rows);
    }
    if (spec.qkv_bias) layer.qkv_bias = {vector(name("attn_q.bias")).data(), spec.q_width() + 2 * spec.kv_width()};
    if (spec.qk_norm) {
        layer.q_norm = vector(name("attn_q_norm.weight"));
        layer.k_norm = vector(name("attn_k_norm.weight"));
    }
    layer.attn_output = matrix(name("attn_output.weight"));
    layer.ffn_norm = vector(name("ffn_norm.weight"));
    layer.ffn_gate = matrix(name("ffn_gate.weight"));
    layer.ffn_up = matrix(name("ffn_up.weight"));
    layer.ffn_down = matrix(name("ffn_down.weight"));
    if (spec.post_norms) {
        layer.post_attn_norm = vector(name("post_attention_norm.weight"));
        layer.post_ffn_norm = vector(name("post_ffw_norm.weight"));
    }
}

Result<std::unique_ptr<Model>> Model::load(const GgufFile& file, ModelSpec spec, ThreadPool& pool,
                                           const OnLoadProgress& progress) {
    return ModelLoader(file, pool, progress).load(std::move(spec));
}

Model::~Model() {
    if (arena_ != nullptr) ::munmap(arena_, arena_bytes_);
}

void Model::embedding_row(uint32_t token, std::span<float> out) const {
    check(token < spec_.vocab, "an embedding is asked for a token of the vocabulary");
    check(out.size() == spec_.width, "an embedding has the model's width");
    kernels::dequantize_packed_row(embedding_, token, out.data());
}

}  // namespace cadans::model
