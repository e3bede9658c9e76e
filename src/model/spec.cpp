#include "model/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/spec_reader.h"

namespace cadans::model {
namespace {

/// What differs between the families, beyond numbers that every file states.
struct FamilyTraits {
    Family family;
    std::string_view architecture;
    RopeStyle rope_style;
    Activation activation;
    bool qk_norm;
    bool post_norms;
};

constexpr std::array kFamilies = {
    FamilyTraits{Family::llama, "llama", RopeStyle::norm, Activation::silu, false, false},
    FamilyTraits{Family::qwen2, "qwen2", RopeStyle::neox, Activation::silu, false, false},
    FamilyTraits{Family::qwen3, "qwen3", RopeStyle::neox, Activation::silu, true, false},
    FamilyTraits{Family::gemma3, "gemma3", RopeStyle::neox, Activation::gelu_tanh, true, true},
};

constexpr uint32_t kGemma3WindowPeriod = 6;    // five windowed layers, then one that sees everything
constexpr double kGemma3LocalRopeBase = 1e4;   // of windowed layers, where the file does not say
constexpr double kGemma3GlobalRopeBase = 1e6;  // of the others, where the file does not say
constexpr uint32_t kGemma3LargestLayers = 62;  // the 27B scales scores by its width, not by its head size

/// Keys whose presence would change the answer in a way that is not computed here.
constexpr std::array<std::string_view, 12> kUnsupportedNumbers = {"expert_count",
                                                                  "attn_logit_softcapping",
                                                                  "logit_scale",
                                                                  "residual_scale",
                                                                  "embedding_scale",
                                                                  "attention.temperature_scale",
                                                                  "attention.shared_kv_layers",
                                                                  "attention.max_alibi_bias",
                                                                  "attention.clamp_kqv",
                                                                  "nextn_predict_layers",
                                                                  "attention.key_length_swa",
                                                                  "attention.q_lora_rank"};

}  // namespace

std::string_view supported_families() noexcept { return "llama, qwen2, qwen3, gemma3"; }

Result<ModelSpec> read_spec(const GgufFile& file) { return SpecReader(file).read(); }

Result<ModelSpec> SpecReader::read() {
    for (Status (SpecReader::*const step)() :
         {&SpecReader::read_family, &SpecReader::read_shape, &SpecReader::read_heads, &SpecReader::read_rope,
          &SpecReader::read_window, &SpecReader::read_scales, &SpecReader::refuse_features,
          &SpecReader::read_tensors}) {
        Status done = (this->*step)();
        if (!done) return std::move(done).error();
    }
    return std::move(spec_);
}

Status SpecReader::read_family() {
    auto architecture = file_.text("general.architecture");
    if (!architecture) return std::move(architecture).error();
    if (!*architecture) return missing("general.architecture");
    const auto* const traits = std::ranges::find(kFamilies, **architecture, &FamilyTraits::architecture);
    if (traits == kFamilies.end())
        return file_.error(ErrorCode::unsupported,
                           fmt::format("models of the family '{}' are not supported; supported are {}",
                                       printable(**architecture), supported_families()),
                           "general.architecture", file_.find("general.architecture")->offset);
    spec_.family = traits->family;
    spec_.architecture = traits->architecture;
    spec_.rope_style = traits->rope_style;
    spec_.activation = traits->activation;
    spec_.qk_norm = traits->qk_norm;
    spec_.post_norms = traits->post_norms;
    auto name = file_.text("general.name");
    if (!name) return std::move(name).error();
    if (*name) spec_.name = printable(**name);
    return Ok{};
}

Status SpecReader::read_shape() {
    struct Count {
        std::string_view key;
        uint32_t* into;
        uint64_t most;
    };
    for (const Count& each :
         {Count{"block_count", &spec_.n_layers, 1024}, Count{"embedding_length", &spec_.width, 65'536},
          Count{"context_length", &spec_.context_length, uint64_t{1} << 27}}) {
        auto value = count_in(each.key, 1, each.most);
        if (!value) return std::move(value).error();
        if (!*value) return missing(key(each.key));
        *each.into = static_cast<uint32_t>(**value);
    }
    auto ffn = same_for_all_layers("feed_forward_length", 1, 1'048'576);
    if (!ffn) return std::move(ffn).error();
    if (!*ffn) return missing(key("feed_forward_length"));
    spec_.ffn_width = **ffn;

    auto eps = number_in("attention.layer_norm_rms_epsilon", 1e-12, 0.1);
    if (!eps) return std::move(eps).error();
    if (!*eps) return missing(key("attention.layer_norm_rms_epsilon"));
    spec_.rms_eps = static_cast<float>(**eps);
    return Ok{};
}

Status SpecReader::read_heads() {
    auto heads = same_for_all_layers("attention.head_count", 1, 1024);
    if (!heads) return std::move(heads).error();
    if (!*heads) return missing(key("attention.head_count"));
    spec_.heads = **heads;
    auto kv_heads = same_for_all_layers("attention.head_count_kv", 1, 1024);
    if (!kv_heads) return std::move(kv_heads).error();
    spec_.kv_heads = kv_heads->value_or(spec_.heads);
    if (spec_.heads % spec_.kv_heads != 0)
        return bad(fmt::format("{} heads do not divide among {} key-value heads", spec_.heads, spec_.kv_heads),
                   "attention.head_count_kv");

    auto key_length = count_in("attention.key_length", 1, 65'536);
    if (!key_length) return std::move(key_length).error();
    auto value_length = count_in("attention.value_length", 1, 65'536);
    if (!value_length) return std::move(value_length).error();
    if (!*key_length && spec_.width % spec_.heads != 0)
        return bad(fmt::format("a width of {} does not divide among {} heads, and no key length is given", spec_.width,
                               spec_.heads),
                   "attention.head_count");
    const uint64_t head_dim = key_length->value_or(spec_.width / spec_.heads);
    if (value_length->value_or(head_dim) != head_dim)
        return unsupported_here(fmt::format("keys of {} and values of {} numbers; only equal lengths are supported",
                                            head_dim, **value_length),
                                "attention.value_length");
    if (head_dim % 16 != 0 || head_dim < 16 || head_dim > kernels::kMaxHeadDim)
        return unsupported_here(
            fmt::format("heads of {} numbers; multiples of 16 up to {} are supported", head_dim, kernels::kMaxHeadDim),
            "attention.key_length");
    spec_.head_dim = static_cast<uint32_t>(head_dim);
    return Ok{};
}

Status SpecReader::read_rope() {
    auto dims = count_in("rope.dimension_count", 2, spec_.head_dim);
    if (!dims) return std::move(dims).error();
    spec_.rope_dims = static_cast<uint32_t>(dims->value_or(spec_.head_dim));
    if (spec_.rope_dims % 2 != 0)
        return bad(fmt::format("{} is odd; numbers turn in pairs", spec_.rope_dims), "rope.dimension_count");
    const bool gemma = spec_.family == Family::gemma3;
    auto base = number_in("rope.freq_base", 1.0, 1e12);
    if (!base) return std::move(base).error();
    spec_.rope.base = base->value_or(gemma ? kGemma3GlobalRopeBase : 1e4);

    auto factor = linear_factor();
    if (!factor) return std::move(factor).error();
    spec_.rope.scale = 1.0 / *factor;

    spec_.rope_windowed = spec_.rope;
    if (gemma) spec_.rope_windowed = {kGemma3LocalRopeBase, 1.0};
    auto windowed_base = number_in("rope.freq_base_swa", 1.0, 1e12);
    if (!windowed_base) return std::move(windowed_base).error();
    if (*windowed_base) spec_.rope_windowed.base = **windowed_base;
    return Ok{};
}

Result<double> SpecReader::linear_factor() {
    auto type = file_.text(key("rope.scaling.type"));
    if (!type) return std::move(type).error();
    const std::string_view kind = type->value_or("");
    if (!kind.empty() && kind != "none" && kind != "linear")
        return unsupported_here(
            fmt::format("rope scaling '{}'; none, linear and rope_freqs.weight are supported", printable(kind)),
            "rope.scaling.type");
    auto factor = number_in("rope.scaling.factor", 0.0, 1e6);
    if (!factor) return std::move(factor).error();
    auto older = number_in("rope.scale_linear", 0.0, 1e6);
    if (!older) return std::move(older).error();
    const double value = kind == "none" ? 0.0 : factor->value_or(older->value_or(0.0));
    // Files write 0 for "no scaling". Anything else below one would be a typing mistake.
    if (value == 0.0) return 1.0;
    if (value < 1e-3) return bad(fmt::format("a rope scaling factor of {}", value), "rope.scaling.factor");
    return value;
}

Status SpecReader::read_window() {
    spec_.windowed.assign(spec_.n_layers, 0);
    const bool gemma = spec_.family == Family::gemma3;
    auto window = count_in("attention.sliding_window", gemma ? 1 : 0, uint64_t{1} << 27);
    if (!window) return std::move(window).error();
    if (gemma && !*window) return missing(key("attention.sliding_window"));
    // A window as long as the context hides nothing; gemma3's windowed layers still turn by another base.
    if (window->value_or(0) == 0 || (!gemma && **window >= spec_.context_length)) return Ok{};
    spec_.window = static_cast<uint32_t>(**window);

    const std::string pattern_key = key("attention.sliding_window_pattern");
    const GgufEntry* const pattern = file_.find(pattern_key);
    if (pattern != nullptr && pattern->type == GgufType::array) {
        auto layers = file_.integers(pattern_key);
        if (!layers) return std::move(layers).error();
        if ((*layers)->size() != spec_.n_layers)
            return bad(fmt::format("{} items for {} layers", (*layers)->size(), spec_.n_layers),
                       "attention.sliding_window_pattern");
        for (uint32_t i = 0; i < spec_.n_layers; ++i) spec_.windowed[i] = (**layers)[i] != 0 ? 1 : 0;
    } else {
        auto period = count_in("attention.sliding_window_pattern", 1, 1024);
        if (!period) return std::move(period).error();
        // Without a pattern, gemma3 has its own and the window of any other family is on every layer.
        const uint64_t every = period->value_or(gemma ? kGemma3WindowPeriod : 0);
        for (uint32_t i = 0; i < spec_.n_layers; ++i) spec_.windowed[i] = every == 0 || (i + 1) % every != 0 ? 1 : 0;
    }
    if (std::ranges::count(spec_.windowed, 1) == 0) spec_.window = 0;
    return Ok{};
}

Status SpecReader::read_scales() {
    const auto root = [](double x) { return static_cast<float>(std::sqrt(x)); };
    spec_.attention_scale = 1.0F / root(spec_.head_dim);
    if (spec_.family == Family::gemma3) {
        spec_.embedding_scale = root(spec_.width);
        if (spec_.n_layers == kGemma3LargestLayers)
            spec_.attention_scale = 1.0F / root(static_cast<double>(spec_.width) / spec_.heads);
    }
    auto attention = number_in("attention.scale", 0.0, 100.0);
    if (!attention) return std::move(attention).error();
    if (attention->value_or(0.0) != 0.0) spec_.attention_scale = static_cast<float>(**attention);
    auto softcap = number_in("final_logit_softcapping", 0.0, 1e6);
    if (!softcap) return std::move(softcap).error();
    spec_.logit_softcap = static_cast<float>(softcap->value_or(0.0));
    return Ok{};
}

Status SpecReader::refuse_features() {
    for (const std::string_view name : kUnsupportedNumbers) {
        const GgufEntry* const entry = file_.find(key(name));
        if (entry == nullptr) continue;
        // Writers put the neutral value (0, or 1 for a scale) even where the feature is not used.
        double value = -1.0;
        if (entry->type == GgufType::f32 || entry->type == GgufType::f64) {
            auto number = file_.number(entry->key);
            if (!number) return std::move(number).error();
            value = **number;
        } else {
            auto count = file_.count(entry->key);
            if (!count) return std::move(count).error();
            value = static_cast<double>(**count);
        }
        const bool neutral = value == 0.0 || (name.ends_with("_scale") && value == 1.0);
        if (!neutral) return unsupported_here(fmt::format("{} is not supported (found {})", name, value), name);
    }
    auto causal = file_.flag(key("attention.causal"));
    if (!causal) return std::move(causal).error();
    if (!causal->value_or(true))
        return unsupported_here("models that see the future are not supported", "attention.causal");
    return Ok{};
}

}  // namespace cadans::model
