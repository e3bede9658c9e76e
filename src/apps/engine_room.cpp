#include "apps/engine_room.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/random.h"
#include "engine/topology.h"
#include "model/memory.h"
#include "model/safe_open.h"
#include "model/vocabulary_reader.h"

namespace cadans::apps {
namespace fs = std::filesystem;
namespace {

constexpr size_t kTemplateFileBytes = 1 << 20;
constexpr uint32_t kLongestContext = 1 << 24;  ///< that --context may ask for
constexpr uint32_t kLargestChunk = 512;        ///< prompt tokens that any policy may put into one step

struct NamedFile {
    std::string name, path;
};

/// NAME=FILE, or FILE_OR_NAME whose name is the file's stem.
Result<NamedFile> named_file(const std::string& argument) {
    const size_t equals = argument.find('=');
    const bool named = equals != std::string::npos && argument.find('/') > equals;
    if (equals == 0) return bad_input(fmt::format("'{}' gives the model no name before the '='", argument), "--model");
    auto path = find_model_file(named ? argument.substr(equals + 1) : argument);
    if (!path) return std::move(path).error();
    return NamedFile{named ? argument.substr(0, equals) : fs::path(*path).stem().string(), *path};
}

std::string_view most_common_type(const model::GgufFile& file) {
    std::vector<std::pair<uint64_t, std::string_view>> bytes;
    for (const model::GgufTensor& tensor : file.tensors()) {
        if (tensor.n_dims < 2) continue;
        const auto* info = model::find_tensor_type(static_cast<uint32_t>(tensor.type));
        const auto known = std::ranges::find(bytes, info->name, &std::pair<uint64_t, std::string_view>::second);
        if (known == bytes.end())
            bytes.emplace_back(tensor.payload.size(), info->name);
        else
            known->first += tensor.payload.size();
    }
    return bytes.empty() ? "" : std::ranges::max(bytes).second;
}

serve::ModelFile facts_of(const model::GgufFile& file, const model::Model& loaded, const std::string& path) {
    serve::ModelFile facts;
    facts.architecture = loaded.spec().architecture;
    for (const model::GgufTensor& tensor : file.tensors()) facts.parameters += tensor.elements();
    const double millions = static_cast<double>(facts.parameters) / 1e6;
    facts.parameter_size = millions < 1000 ? fmt::format("{:.0f}M", millions) : fmt::format("{:.1f}B", millions / 1000);
    facts.quantization = most_common_type(file);
    facts.bytes = file.size_bytes();
    facts.resident_bytes = loaded.weight_bytes();
    facts.embedding_length = loaded.spec().width;
    if (const auto license = file.text("general.license"); license && license->has_value())
        facts.license = std::string(**license);
    std::error_code ignored;
    const auto changed = fs::last_write_time(path, ignored);
    facts.modified_unix_seconds =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::file_clock::to_sys(changed).time_since_epoch())
            .count();
    for (const model::GgufEntry& entry : file.metadata()) {
        const std::string key(entry.key);
        if (!key.starts_with("general.") && !key.starts_with(facts.architecture + ".")) continue;
        if (entry.type == model::GgufType::boolean)
            facts.metadata.emplace_back(key, *file.flag(key).value());
        else if (entry.type == model::GgufType::string)
            facts.metadata.emplace_back(key, std::string(*file.text(key).value()));
        else if (entry.type == model::GgufType::array)
            continue;
        else if (const auto count = file.count(key); count && count->has_value())
            facts.metadata.emplace_back(key, uint64_t{**count});
        else if (const auto number = file.number(key); number && number->has_value())
            facts.metadata.emplace_back(key, **number);
    }
    return facts;
}

std::string fingerprint_of(const model::GgufFile& file) {
    uint64_t hash = 0;
    const auto mix = [&hash](uint64_t part) { hash = mix64(hash ^ part); };
    for (const model::GgufTensor& tensor : file.tensors()) {
        for (const char c : tensor.name) mix(static_cast<unsigned char>(c));
        mix(static_cast<uint64_t>(tensor.type));
        for (uint32_t d = 0; d < tensor.n_dims; d++) mix(tensor.dims[d]);
    }
    return fmt::format("{:016x}", hash);
}

Result<std::unique_ptr<text::ChatTemplate>> template_of(const model::GgufFile& file, const std::string& fallback_file) {
    auto sources = model::read_templates(file);
    if (!sources) return std::move(sources).error();
    std::string source;
    if (!sources->empty()) {
        source = sources->front().source;
    } else if (!fallback_file.empty()) {
        auto given = read_text(fallback_file, kTemplateFileBytes);
        if (!given) return std::move(given).error();
        source = *std::move(given);
    } else {
        return std::unique_ptr<text::ChatTemplate>();
    }
    auto parsed = text::ChatTemplate::parse(source);
    if (!parsed) {
        Error error = std::move(parsed).error();
        error.message = fmt::format("{}: its chat template cannot be used: {}", file.name(), error.message);
        return error;
    }
    return std::make_unique<text::ChatTemplate>(*std::move(parsed));
}

Result<LoadedModel> load(const NamedFile& named, const ComputeSettings& settings, ThreadPool& pool,
                         const OnLoad& progress) {
    // A child reads the file first: what would kill a reader kills that one.
    if (Status vetted = model::vet_model(named.path); !vetted) return std::move(vetted).error();
    auto file = model::GgufFile::open(named.path);
    if (!file) return std::move(file).error();
    auto spec = model::read_spec(*file);
    if (!spec) return std::move(spec).error();
    auto words = model::read_vocabulary(*file);
    if (!words) return std::move(words).error();
    auto vocabulary = text::Vocabulary::make(*std::move(words));
    if (!vocabulary) return std::move(vocabulary).error();
    auto tokenizer = text::Tokenizer::make(*std::move(vocabulary));
    if (!tokenizer) return std::move(tokenizer).error();
    auto chat_template = template_of(*file, settings.chat_template_file);
    if (!chat_template) return std::move(chat_template).error();
    const uint32_t trained = spec->context_length;
    if (Status fits = model::check_fits(model::estimate_memory(*spec, *file), model::available_memory(), named.name);
        !fits)
        return std::move(fits).error();
    auto loaded = model::Model::load(*file, *std::move(spec), pool, [&](model::LoadProgress p) {
        return progress(named.name, p.done_bytes, p.total_bytes);
    });
    if (!loaded) return std::move(loaded).error();

    LoadedModel out;
    out.model = *std::move(loaded);
    out.tokenizer = std::make_unique<text::Tokenizer>(*std::move(tokenizer));
    out.chat_template = *std::move(chat_template);
    out.facts.vocab_size = out.model->spec().vocab;
    out.facts.context_tokens = settings.context == 0 ? trained : settings.context;
    out.facts.groups = engine::PageGroups::of(out.model->spec()).facts;
    out.fingerprint = fingerprint_of(*file);
    out.card.name = named.name;
    out.card.trained_context_tokens = trained;
    out.card.tokenizer = out.tokenizer.get();
    out.card.chat_template = out.chat_template.get();
    out.card.file = facts_of(*file, *out.model, named.path);
    const auto changed = static_cast<uint64_t>(out.card.file.modified_unix_seconds);
    out.card.file.digest = fmt::format("{}{:016x}", out.fingerprint, mix64(file->size_bytes() ^ mix64(changed)));
    return out;
}

/// The page budget: as asked, else a quarter of what is free.
Result<uint64_t> page_budget(const ComputeSettings& settings) {
    if (!settings.kv_memory.empty()) return parse_size(settings.kv_memory);
    return model::available_memory().bytes / 4;
}

/// Caps each model's context so that one full request fits the budget; refuses one that was asked for and does not.
Status fit_contexts(EngineRoom& room, const ComputeSettings& settings) {
    for (LoadedModel& loaded : room.models) {
        const uint32_t fits = sched::longest_sequence(room.house, loaded.facts);
        if (fits == 0)
            return Error{ErrorCode::no_memory,
                         fmt::format("{} for keys and values is too little for even one page of {}; raise --kv-memory",
                                     format_size(room.house.page_bytes), loaded.card.name)};
        if (settings.context != 0 && fits < settings.context)
            return Error{ErrorCode::no_memory,
                         fmt::format("a context of {} tokens needs more than the {} there are for keys and values; {} "
                                     "tokens fit: raise --kv-memory or ask for less",
                                     settings.context, format_size(room.house.page_bytes), fits)};
        loaded.facts.context_tokens = std::min(loaded.facts.context_tokens, fits);
    }
    return Ok{};
}

}  // namespace

std::string models_folder() {
    if (const char* home = std::getenv("CADANS_HOME"); home != nullptr && *home != 0)
        return std::string(home) + "/models";
    if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != 0)
        return std::string(cache) + "/cadans/models";
    const char* home = std::getenv("HOME");
    return std::string(home != nullptr ? home : ".") + "/.cache/cadans/models";
}

Result<std::string> find_model_file(const std::string& file_or_name) {
    if (file_or_name.find('/') != std::string::npos || fs::exists(file_or_name)) return file_or_name;
    const std::string known = fmt::format("{}/{}.gguf", models_folder(), file_or_name);
    if (fs::exists(known)) return known;
    if (file_or_name.ends_with(".gguf"))
        return Error{ErrorCode::not_found, fmt::format("there is no file {}", file_or_name), file_or_name};
    return Error{
        ErrorCode::not_found,
        fmt::format("there is no model '{}': neither a file here nor {}; name a GGUF file, or run 'make serve' once to "
                    "fetch the default model",
                    file_or_name, known),
        file_or_name};
}

Result<std::unique_ptr<EngineRoom>> EngineRoom::open(const ComputeSettings& settings, const OnLoad& progress) {
    auto room = std::make_unique<EngineRoom>();
    auto isa = kernels::choose_isa(settings.isa.empty() ? std::nullopt : std::optional(settings.isa));
    if (!isa) return std::move(isa).error();
    room->table = &kernels::kernel_table(*isa);
    room->pool = std::make_unique<ThreadPool>(settings.threads != 0 ? settings.threads : engine::usable_cores());

    std::vector<std::string> wanted = settings.models;
    if (wanted.empty()) wanted.emplace_back("smollm2");
    for (const std::string& argument : wanted) {
        auto named = named_file(argument);
        if (!named) return std::move(named).error();
        for (const LoadedModel& other : room->models)
            if (other.card.name == named->name)
                return bad_input(
                    fmt::format("two models are called '{}'; give one another name with NAME=FILE", named->name),
                    "--model");
        auto loaded = load(*named, settings, *room->pool, progress);
        if (!loaded) return std::move(loaded).error();
        room->models.push_back(*std::move(loaded));
    }

    sched::House& house = room->house;
    house.limits.max_running = settings.max_running;
    house.limits.prefill_chunk = settings.prefill_chunk;
    house.limits.max_rows = std::max(settings.prefill_chunk, kLargestChunk) + settings.max_running;
    auto budget = page_budget(settings);
    if (!budget) return std::move(budget).error();
    house.page_bytes = *budget;
    house.prefix_cache = settings.prefix_cache == "on";
    if (Status fits = fit_contexts(*room, settings); !fits) return std::move(fits).error();

    engine::EngineLimits limits{.max_rows = house.limits.max_rows,
                                .max_items = house.limits.max_running,
                                .max_scores = house.limits.max_rows,
                                .max_context_tokens = 0};
    for (const LoadedModel& loaded : room->models)
        limits.max_context_tokens = std::max(limits.max_context_tokens, loaded.facts.context_tokens);
    room->executor = std::make_unique<engine::CpuExecutor>(*room->table, *room->pool, limits);
    for (LoadedModel& loaded : room->models) {
        std::vector<uint32_t> pages;
        for (const PageGroupFacts& group : loaded.facts.groups)
            pages.push_back(
                static_cast<uint32_t>(std::min<uint64_t>(house.page_bytes / group.bytes_per_page, UINT32_MAX - 1)));
        loaded.facts.model = loaded.card.model = room->executor->add(*loaded.model, pages);
        loaded.card.context_tokens = loaded.facts.context_tokens;
        ModelFacts unbounded = loaded.facts;
        unbounded.context_tokens = kLongestContext;
        loaded.card.kv_tokens = sched::longest_sequence(house, unbounded);
        house.models.push_back(loaded.facts);
    }
    return room;
}

}  // namespace cadans::apps
