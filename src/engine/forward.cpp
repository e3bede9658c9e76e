// Main idea: every phase is a loop over rows, panels or attention units that threads divide among themselves;
// a barrier ends a phase where the next one reads what other threads wrote.
#include "engine/forward.h"

#include "base/check.h"
#include "kernels/exact_math.h"

namespace cadans::engine {
namespace {

constexpr uint32_t kPanel = kernels::kPanelRows;
constexpr uint32_t kFewRows = 8;        // up to here a product is bound by memory: one contiguous part a thread
constexpr uint32_t kPanelsPerUnit = 8;  // above: 128 outputs at a time, so that a disturbed thread does less

enum LayerPhase : uint32_t { qkv, attention, attn_output, ffn_gate, ffn_down, kLayerPhases };
constexpr uint32_t kMaxParts = 3;  // a layer's q, k and v may be three products

uint32_t phase_of_layer(uint32_t layer, LayerPhase phase) { return layer * (kLayerPhases + kMaxParts) + phase; }

}  // namespace

Forward::Forward(const model::Model& model, const KvArena& arena, const kernels::KernelTable& table, ThreadPool& pool,
                 const EngineLimits& limits)
    : model_(model),
      spec_(model.spec()),
      arena_(arena),
      k_(table),
      pool_(pool),
      threads_(pool.threads()),
      share_((spec_.n_layers + 1) * (kLayerPhases + kMaxParts)),
      stream_(size_t{limits.max_rows} * spec_.width),
      qkv_(size_t{limits.max_rows} * (spec_.q_width() + 2 * spec_.kv_width())),
      projected_(size_t{limits.max_rows} * spec_.width),
      up_(size_t{limits.max_rows} * spec_.ffn_width),
      block_in_(limits.max_rows, spec_.width),
      attended_(limits.max_rows, spec_.q_width()),
      gated_(limits.max_rows, spec_.ffn_width),
      head_in_(kLogitRows, spec_.width) {
    for (uint32_t i = 0; i < spec_.n_layers; i++) {
        const model::LayerWeights& layer = model.layer(i);
        for (const model::Part& part : layer.qkv) block_in_.want(part.matrix);
        block_in_.want(layer.ffn_gate);
        block_in_.want(layer.ffn_up);
        attended_.want(layer.attn_output);
        gated_.want(layer.ffn_down);
    }
    head_in_.want(model.head());
    const std::vector<PageGroupFacts>& groups = arena.groups().facts;
    for (uint32_t g = 0; g < groups.size(); g++)
        attention_.emplace_back(spec_, groups[g].window_tokens, g, limits, threads_);
    const model::Rope* ropes[2] = {&spec_.rope, &spec_.rope_windowed};
    for (const uint32_t i : {0u, 1u}) {
        frequencies_[i].resize(spec_.rope_dims / 2);
        kernels::rope_frequencies(ropes[i]->base, spec_.rope_dims, frequencies_[i].data());
        for (double& frequency : frequencies_[i]) frequency *= ropes[i]->scale;
        cos_[i] = Aligned<float>(size_t{limits.max_rows} * spec_.rope_dims / 2);
        sin_[i] = Aligned<float>(size_t{limits.max_rows} * spec_.rope_dims / 2);
    }
}

template <class F>
void Forward::each_row(uint32_t thread, uint32_t rows, F&& f) {
    const Part mine = Part::of(rows, thread, threads_);
    for (uint32_t r = mine.begin; r < mine.end; r++) f(r);
}

template <class Done>
void Forward::product(uint32_t thread, uint32_t phase, const kernels::PackedMatrix& w, const Operand& x, uint32_t rows,
                      float* y, uint32_t stride, Done&& done) {
    const kernels::InputRows input = x.input(w, 0, rows);
    const auto panels = static_cast<uint32_t>(w.panels());
    const auto outputs = static_cast<uint32_t>(w.rows);
    const auto part = [&](uint32_t begin, uint32_t end) {
        if (begin == end) return;
        k_.matmul(w, begin, end, input, y, stride);
        done(begin * kPanel, std::min(end * kPanel, outputs));
    };
    if (rows <= kFewRows) {
        const Part mine = Part::of(panels, thread, threads_, 2);  // pairs of panels: whole groups of 32 outputs
        return part(mine.begin, mine.end);
    }
    share_.take(phase, (panels + kPanelsPerUnit - 1) / kPanelsPerUnit,
                [&](uint32_t unit) { part(unit * kPanelsPerUnit, std::min((unit + 1) * kPanelsPerUnit, panels)); });
}

void Forward::run(const Batch& batch) {
    share_.rewind();
    for (AttentionWork& work : attention_) work.plan(batch);
    pool_.run([&](uint32_t thread, uint32_t) {
        embed(thread, batch);
        for (uint32_t layer = 0; layer < spec_.n_layers; layer++) {
            attention_block(thread, batch, layer);
            ffn_block(thread, batch, layer);
        }
    });
}

void Forward::embed(uint32_t thread, const Batch& batch) {
    const uint32_t half = spec_.rope_dims / 2;
    const float* factors = spec_.rope_factors ? model_.rope_factors().data() : nullptr;
    each_row(thread, batch.rows(), [&](uint32_t r) {
        float* x = stream_.data() + size_t{r} * spec_.width;
        model_.embedding_row(batch.token[r], {x, spec_.width});
        if (spec_.embedding_scale != 1.0F) k_.scale(x, spec_.embedding_scale, spec_.width, x);
        for (const uint32_t i : {0u, 1u})
            kernels::rope_row(batch.position[r], frequencies_[i].data(), factors, half, 1.0,
                              cos_[i].data() + size_t{r} * half, sin_[i].data() + size_t{r} * half);
    });
    pool_.barrier();
}

void Forward::attention_block(uint32_t thread, const Batch& batch, uint32_t i) {
    const model::LayerWeights& layer = model_.layer(i);
    const uint32_t rows = batch.rows(), width = spec_.width, stride = spec_.q_width() + 2 * spec_.kv_width();
    each_row(thread, rows, [&](uint32_t r) {
        block_in_.set_norm(k_, r, stream_.data() + size_t{r} * width, layer.attn_norm.data(), spec_.rms_eps);
    });
    pool_.barrier();
    for (uint32_t p = 0; p < layer.qkv.size(); p++)
        product(thread, phase_of_layer(i, kLayerPhases) + p, layer.qkv[p].matrix, block_in_, rows,
                qkv_.data() + layer.qkv[p].first_row, stride, [](uint32_t, uint32_t) {});
    pool_.barrier();
    place_heads(thread, batch, i);
    pool_.barrier();

    AttentionWork& work = attention_[arena_.groups().of_layer[i].group];
    const AttentionWork::Layer view{arena_, i, qkv_.data(), stride, attended_.row(0)};
    share_.take(phase_of_layer(i, attention), work.units(),
                [&](uint32_t unit) { work.run(unit, batch, view, k_, thread); });
    pool_.barrier();
    each_row(thread, rows, [&](uint32_t r) {
        work.merge(r, batch, view, k_);
        attended_.columns_done(k_, r, 0, spec_.q_width());
    });
    pool_.barrier();
    float* projected = projected_.data();
    product(thread, phase_of_layer(i, attn_output), layer.attn_output, attended_, rows, projected, width,
            [](uint32_t, uint32_t) {});
    pool_.barrier();
    add_to_stream(thread, rows, layer.post_attn_norm);
}

/// Biases, norms of heads and rotation, then keys and values into their pages.
void Forward::place_heads(uint32_t thread, const Batch& batch, uint32_t i) {
    const model::LayerWeights& layer = model_.layer(i);
    const PageGroups::Place place = arena_.groups().of_layer[i];
    const uint32_t hd = spec_.head_dim, group = spec_.heads / spec_.kv_heads, half = spec_.rope_dims / 2;
    const uint32_t stride = spec_.q_width() + 2 * spec_.kv_width();
    const uint32_t rope = spec_.windowed[i] != 0;
    const kernels::RopeStyle style = spec_.rope_style;
    const Part mine = Part::of(batch.rows() * spec_.kv_heads, thread, threads_);
    for (uint32_t unit = mine.begin; unit < mine.end; unit++) {
        const uint32_t r = unit / spec_.kv_heads, h = unit % spec_.kv_heads;
        float* row = qkv_.data() + size_t{r} * stride;
        const uint32_t q_at = h * group * hd, k_at = spec_.q_width() + h * hd, v_at = k_at + spec_.kv_width();
        if (spec_.qkv_bias) {
            const float* bias = layer.qkv_bias.data();
            k_.add(row + q_at, bias + q_at, group * hd, row + q_at);
            k_.add(row + k_at, bias + k_at, hd, row + k_at);
            k_.add(row + v_at, bias + v_at, hd, row + v_at);
        }
        if (spec_.qk_norm) {
            for (uint32_t g = 0; g < group; g++)
                k_.rms_norm(row + q_at + g * hd, layer.q_norm.data(), hd, spec_.rms_eps, row + q_at + g * hd);
            k_.rms_norm(row + k_at, layer.k_norm.data(), hd, spec_.rms_eps, row + k_at);
        }
        const float* cos = cos_[rope].data() + size_t{r} * half;
        const float* sin = sin_[rope].data() + size_t{r} * half;
        k_.rope(row + q_at, group, hd, spec_.rope_dims, cos, sin, style);
        k_.rope(row + k_at, 1, hd, spec_.rope_dims, cos, sin, style);
        const StepItem& item = batch.items[batch.item_of[r]];
        const uint32_t position = batch.position[r];
        std::byte* page = arena_.head(i, page_at(item, place.group, position / kPageTokens), h);
        k_.kv_store(arena_.kv(), page, position % kPageTokens, row + k_at, row + v_at, hd);
    }
}

/// stream += projected, normalised first where the family does that. Ends a block.
void Forward::add_to_stream(uint32_t thread, uint32_t rows, std::span<const float> post_norm) {
    each_row(thread, rows, [&](uint32_t r) {
        float* x = stream_.data() + size_t{r} * spec_.width;
        float* y = projected_.data() + size_t{r} * spec_.width;
        if (!post_norm.empty()) k_.rms_norm(y, post_norm.data(), spec_.width, spec_.rms_eps, y);
        k_.add(x, y, spec_.width, x);
    });  // no barrier: the next phase's rows are the same thread's
}

void Forward::ffn_block(uint32_t thread, const Batch& batch, uint32_t i) {
    const model::LayerWeights& layer = model_.layer(i);
    const uint32_t rows = batch.rows(), width = spec_.width, ffn = spec_.ffn_width;
    each_row(thread, rows, [&](uint32_t r) {
        block_in_.set_norm(k_, r, stream_.data() + size_t{r} * width, layer.ffn_norm.data(), spec_.rms_eps);
    });
    pool_.barrier();
    const auto activate = spec_.activation == model::Activation::silu ? k_.silu_mul : k_.gelu_mul;
    const kernels::InputRows up_input = block_in_.input(layer.ffn_up, 0, rows);
    product(thread, phase_of_layer(i, ffn_gate), layer.ffn_gate, block_in_, rows, gated_.row(0), ffn,
            [&](uint32_t begin, uint32_t end) {
                k_.matmul(layer.ffn_up, begin / kPanel, (end + kPanel - 1) / kPanel, up_input, up_.data(), ffn);
                for (uint32_t r = 0; r < rows; r++) {
                    float* gate = gated_.row(r) + begin;
                    activate(gate, up_.data() + size_t{r} * ffn + begin, end - begin, gate);
                    gated_.columns_done(k_, r, begin, end);
                }
            });
    pool_.barrier();
    product(thread, phase_of_layer(i, ffn_down), layer.ffn_down, gated_, rows, projected_.data(), width,
            [](uint32_t, uint32_t) {});
    pool_.barrier();
    add_to_stream(thread, rows, layer.post_ffn_norm);
}

void Forward::last_layer(uint32_t row, float* out) const {
    k_.rms_norm(stream_.data() + size_t{row} * spec_.width, model_.output_norm().data(), spec_.width, spec_.rms_eps,
                out);
}

void Forward::logits(std::span<const uint32_t> rows, float* out) {
    check(rows.size() <= kLogitRows, "at most kLogitRows rows of logits at once");
    const auto n = static_cast<uint32_t>(rows.size());
    share_.rewind();
    pool_.run([&](uint32_t thread, uint32_t) {
        each_row(thread, n, [&](uint32_t r) {
            head_in_.set_norm(k_, r, stream_.data() + size_t{rows[r]} * spec_.width, model_.output_norm().data(),
                              spec_.rms_eps);
        });
        pool_.barrier();
        product(thread, 0, model_.head(), head_in_, n, out, spec_.vocab, [&](uint32_t begin, uint32_t end) {
            if (spec_.logit_softcap == 0.0F) return;
            for (uint32_t r = 0; r < n; r++) {
                float* part = out + size_t{r} * spec_.vocab + begin;
                k_.softcap(part, spec_.logit_softcap, end - begin, part);
            }
        });
    });
}

}  // namespace cadans::engine
