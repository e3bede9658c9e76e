#include "apps/engine_room.h"

#include <fmt/format.h>
#include <malloc.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/random.h"
#include "engine/model_work.h"
#include "engine/topology.h"
#include "model/memory.h"
#include "model/safe_open.h"
#include "model/vocabulary_reader.h"
#include "text/same_words.h"

namespace cadans::apps {
namespace fs = std::filesystem;
namespace {

constexpr size_t kTemplateFileBytes = 1 << 20;
constexpr uint32_t kLongestContext = 1 << 24;  ///< that --context may ask for
constexpr uint32_t kLargestChunk = 512;        ///< prompt tokens that any policy may put into one step

struct NamedFile {
    std::string name, path;
    bool at_start = true;  ///< false: found in a folder, and left out where it cannot be run
};

/// What a folder calls GGUF files, by name; whether they are is told where they are read.
Result<std::vector<NamedFile>> files_in(const std::string& folder) {
    std::vector<NamedFile> found;
    std::error_code trouble;
    for (fs::directory_iterator at(folder, trouble), end; !trouble && at != end; at.increment(trouble))
        if (at->path().extension() == ".gguf")
            found.push_back({at->path().stem().string(), at->path().string(), false});
    if (trouble) return Error{ErrorCode::io, fmt::format("{} cannot be read: {}", folder, trouble.message()), folder};
    std::ranges::sort(found, {}, &NamedFile::name);
    return found;
}

/// NAME=FILE, or FILE; a '=' behind a '/' is the file's own.
struct MaybeNamed {
    std::optional<std::string> name;
    std::string file;
};

MaybeNamed part_name(const std::string& argument) {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos || argument.find('/') < equals) return {{}, argument};
    return {argument.substr(0, equals), argument.substr(equals + 1)};
}

/// NAME=FILE, or FILE_OR_NAME whose name is the file's stem, or a folder.
Result<std::vector<NamedFile>> named_files(const std::string& argument) {
    const MaybeNamed given = part_name(argument);
    if (given.name == "")
        return bad_input(fmt::format("'{}' gives the model no name before the '='", argument), "--model");
    if (std::error_code hidden; !given.name && fs::is_directory(argument, hidden)) return files_in(argument);
    auto path = find_model_file(given.file);
    if (!path) return std::move(path).error();
    return std::vector<NamedFile>{{given.name.value_or(fs::path(*path).stem().string()), *path}};
}

/// All that the settings name, each name once: what is found in a folder gives way to what is named by itself.
Result<std::vector<NamedFile>> wanted_files(const ComputeSettings& settings) {
    std::vector<std::string> arguments = settings.models;
    if (arguments.empty() && settings.models_dir.empty()) arguments.emplace_back("smollm2");
    std::vector<NamedFile> wanted, found;
    for (const std::string& argument : arguments) {
        auto files = named_files(argument);
        if (!files) return std::move(files).error();
        for (NamedFile& file : *files) (file.at_start ? wanted : found).push_back(std::move(file));
    }
    if (!settings.models_dir.empty()) {
        auto files = files_in(settings.models_dir);
        if (!files) return std::move(files).error();
        found.insert(found.end(), files->begin(), files->end());
    }
    for (size_t i = 0; i < wanted.size(); i++) {
        const auto same = std::ranges::find(wanted, wanted[i].name, &NamedFile::name);
        if (same != wanted.begin() + static_cast<std::ptrdiff_t>(i))
            return bad_input(
                fmt::format("two models are called '{}'; give one another name with NAME=FILE", wanted[i].name),
                "--model");
    }
    for (NamedFile& file : found)
        if (std::ranges::find(wanted, file.name, &NamedFile::name) == wanted.end()) wanted.push_back(std::move(file));
    for (const std::string& argument : settings.chat_templates) {
        const MaybeNamed given = part_name(argument);
        if (given.name && std::ranges::find(wanted, *given.name, &NamedFile::name) == wanted.end())
            return bad_input(fmt::format("--chat-template {}: there is no model '{}'", argument, *given.name),
                             "--chat-template");
    }
    return wanted;
}

/// What --chat-template names for a model: NAME=FILE before a FILE for all, the last of either. Empty: nothing.
std::string template_file_of(const std::string& model, const std::vector<std::string>& arguments) {
    std::string own, for_all;
    for (const std::string& argument : arguments) {
        MaybeNamed given = part_name(argument);
        if (!given.name)
            for_all = std::move(given.file);
        else if (*given.name == model)
            own = std::move(given.file);
    }
    return own.empty() ? for_all : own;
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

int64_t changed_at(const std::string& path) {
    std::error_code ignored;
    const auto changed = fs::last_write_time(path, ignored);
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::file_clock::to_sys(changed).time_since_epoch())
        .count();
}

serve::ModelFile facts_of(const model::GgufFile& file, const model::ModelSpec& spec,
                          const model::MemoryEstimate& memory, const std::string& path) {
    serve::ModelFile facts;
    facts.architecture = spec.architecture;
    for (const model::GgufTensor& tensor : file.tensors()) facts.parameters += tensor.elements();
    const double millions = static_cast<double>(facts.parameters) / 1e6;
    facts.parameter_size = millions < 1000 ? fmt::format("{:.0f}M", millions) : fmt::format("{:.1f}B", millions / 1000);
    facts.quantization = most_common_type(file);
    facts.bytes = file.size_bytes();
    facts.resident_bytes = memory.weight_bytes;
    facts.embedding_length = spec.width;
    if (const auto license = file.text("general.license"); license && license->has_value())
        facts.license = std::string(**license);
    facts.modified_unix_seconds = changed_at(path);
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

/// The one that is given takes the place of the file's own. Null: there is neither.
Result<std::unique_ptr<text::ChatTemplate>> template_of(const model::GgufFile& file, const std::string& given_file) {
    std::string source;
    if (!given_file.empty()) {
        auto given = read_text(given_file, kTemplateFileBytes);
        if (!given) return std::move(given).error();
        source = *std::move(given);
    } else {
        auto sources = model::read_templates(file);
        if (!sources) return std::move(sources).error();
        if (sources->empty()) return std::unique_ptr<text::ChatTemplate>();
        source = sources->front().source;
    }
    auto parsed = text::ChatTemplate::parse(source);
    if (!parsed) {
        Error error = std::move(parsed).error();
        error.message =
            given_file.empty()
                ? fmt::format(
                      "{}: its chat template cannot be used: {}; --chat-template FILE gives another in its place",
                      file.name(), error.message)
                : fmt::format("{}: this chat template cannot be used: {}", given_file, error.message);
        return error;
    }
    return std::make_unique<text::ChatTemplate>(*std::move(parsed));
}

/// Size and time of a file: what is not the same any more was changed.
uint64_t stamp_of(const std::string& path) {
    std::error_code ignored;
    const auto time = static_cast<uint64_t>(fs::last_write_time(path, ignored).time_since_epoch().count());
    return mix64(fs::file_size(path, ignored) ^ mix64(time));
}

kernels::KvType kv_type_of(const ComputeSettings& settings) {
    return settings.kv_type == "q8" ? kernels::KvType::q8 : kernels::KvType::f16;
}

/// Everything but the weights.
Result<KnownModel> read_known(const NamedFile& named, const ComputeSettings& settings) {
    const uint64_t stamp = stamp_of(named.path);
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
    auto chat_template = template_of(*file, template_file_of(named.name, settings.chat_templates));
    if (!chat_template) return std::move(chat_template).error();

    KnownModel out;
    out.tokenizer = std::make_unique<text::Tokenizer>(*std::move(tokenizer));
    out.chat_template = *std::move(chat_template);
    out.path = named.path;
    out.stamp = stamp;
    out.at_start = named.at_start;
    out.memory = model::estimate_memory(*spec, *file);
    out.facts.vocab_size = spec->vocab;
    out.facts.context_tokens = settings.context == 0 ? spec->context_length : settings.context;
    out.facts.groups = engine::PageGroups::of(*spec, kv_type_of(settings)).facts;
    out.fingerprint = fingerprint_of(*file);
    out.card.name = named.name;
    out.card.trained_context_tokens = spec->context_length;
    out.card.tokenizer = out.tokenizer.get();
    out.card.chat_template = out.chat_template.get();
    out.card.memory_bytes = out.memory.unloaded_bytes();
    out.card.work = engine::work_of(*spec, out.memory, out.facts);
    out.card.file = facts_of(*file, *spec, out.memory, named.path);
    const auto changed = static_cast<uint64_t>(out.card.file.modified_unix_seconds);
    out.card.file.digest = fmt::format("{}{:016x}", out.fingerprint, mix64(file->size_bytes() ^ mix64(changed)));
    return out;
}

/// How the vocabularies of two models differ; nothing: one may draft for the other.
std::optional<std::string> words_differ(const KnownModel& target, const KnownModel& drafter) {
    if (target.facts.vocab_size != drafter.facts.vocab_size)
        return fmt::format("its head tells {} tokens apart, that of the other {}", drafter.facts.vocab_size,
                           target.facts.vocab_size);
    return text::first_difference(drafter.tokenizer->vocabulary(), target.tokenizer->vocabulary());
}

/// The page budget: as asked, else a quarter of what is free.
Result<uint64_t> page_budget(const ComputeSettings& settings) {
    if (!settings.kv_memory.empty()) return parse_size(settings.kv_memory);
    return model::available_memory().bytes / 4;
}

Status too_few_pages(const std::string& name, uint64_t page_bytes) {
    return Error{ErrorCode::no_memory,
                 fmt::format("{} for keys and values is too little for even one page of {}; raise --kv-memory",
                             format_size(page_bytes), name)};
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

    auto wanted = wanted_files(settings);
    if (!wanted) return std::move(wanted).error();
    for (const NamedFile& named : *wanted) {
        auto known = read_known(named, settings);
        if (known) {
            room->models.push_back(*std::move(known));
        } else if (named.at_start) {
            return std::move(known).error();
        } else {
            spdlog::warn("{} is left out: {}", named.path, known.error().message);
        }
    }
    if (room->models.empty())
        return Error{ErrorCode::not_found, "there is no model that can be run in the folders named", "--models-dir"};
    if (Status added = room->add_draft_model(settings); !added) return std::move(added).error();
    if (Status loaded = room->load_first(settings, progress); !loaded) return std::move(loaded).error();
    for (const KnownModel& known : room->models)
        if (known.drafts && known.model == nullptr)
            return Error{ErrorCode::no_memory,
                         fmt::format("there is no memory for the draft model {} beside the models before it; leave "
                                     "--draft-model out, or raise --model-memory",
                                     known.path),
                         "--draft-model"};
    for (const KnownModel& known : room->models)
        if (known.model == nullptr && !settings.on_first_use)
            return bad_input(fmt::format("one model is wanted, and {} was only found in a folder", known.path));

    sched::House& house = room->house;
    house.limits.max_running = settings.max_running;
    house.limits.prefill_chunk = settings.prefill_chunk;
    house.limits.max_rows = std::max(settings.prefill_chunk, kLargestChunk) + settings.max_running;
    auto budget = page_budget(settings);
    if (!budget) return std::move(budget).error();
    house.page_bytes = *budget;
    house.prefix_cache = settings.prefix_cache == "on";
    if (Status fits = room->fit_contexts(settings); !fits) return std::move(fits).error();

    room->limits = {.max_rows = house.limits.max_rows,
                    .max_items = house.limits.max_running,
                    .max_scores = house.limits.max_rows,
                    .max_context_tokens = 0,
                    .kv = kv_type_of(settings)};
    for (const KnownModel& known : room->models)
        room->limits.max_context_tokens = std::max(room->limits.max_context_tokens, known.facts.context_tokens);
    room->executor = std::make_unique<engine::CpuExecutor>(*room->table, *room->pool, room->limits);
    for (KnownModel& known : room->models) {
        known.facts.model = known.card.model = room->executor->reserve();
        known.card.context_tokens = known.facts.context_tokens;
        known.card.resident = known.model != nullptr;
        if (known.model != nullptr) room->executor->place(known.facts.model, *known.model, room->pages_of(known));
        ModelFacts unbounded = known.facts;
        unbounded.context_tokens = kLongestContext;
        known.card.kv_tokens = sched::longest_sequence(house, unbounded);
        house.models.push_back(known.facts);
    }
    if (!room->models.back().drafts) return room;
    house.draft = sched::House::DraftModel{room->models.back().facts.model};
    for (const KnownModel& known : room->models)
        if (!known.drafts && !words_differ(known, room->models.back()))
            house.draft->drafts_for.push_back(known.facts.model);
    return room;
}

/// The last of all models. Errors: bad_input where its words are not those of the first.
Status EngineRoom::add_draft_model(const ComputeSettings& settings) {
    if (settings.draft_model.empty()) return Ok{};
    auto path = find_model_file(settings.draft_model);
    if (!path) return std::move(path).error();
    auto known = read_known({fs::path(*path).stem().string(), *path}, settings);
    if (!known) return std::move(known).error();
    known->drafts = true;
    known->facts.context_tokens = std::min(known->facts.context_tokens, known->card.trained_context_tokens);
    const KnownModel& first = models.front();
    if (const auto different = words_differ(first, *known))
        return bad_input(
            fmt::format("{} cannot draft for {}: {}; a draft model has the very tokens of the model that it "
                        "drafts for, so take a smaller one of the same family, or leave --draft-model out",
                        *path, first.path, *different),
            "--draft-model");
    models.push_back(*std::move(known));
    return Ok{};
}

/// Those that are named by themselves, in their order, as long as there is room; the others wait for their first use.
Status EngineRoom::load_first(const ComputeSettings& settings, const OnLoad& progress) {
    uint64_t taken = 0;
    for (KnownModel& known : models) {
        if (!known.at_start) continue;
        const std::string& name = known.card.name;
        const uint64_t needed = known.memory.unloaded_bytes();
        if (!settings.model_memory.empty()) {
            const uint64_t most = *parse_size(settings.model_memory);
            if (needed > most)
                return Error{ErrorCode::no_memory, fmt::format("{} needs {} of memory, but --model-memory allows {}",
                                                               name, format_size(needed), format_size(most))};
            if (needed > most - taken) {
                spdlog::info("{} is loaded when somebody asks for it: the models before it fill --model-memory", name);
                continue;
            }
        }
        const model::AvailableMemory free = model::available_memory();
        if (Status fits = model::check_fits(known.memory, free, name); !fits) {
            if (!settings.on_first_use || known.memory.fixed_bytes() > free.bytes + taken)
                return std::move(fits).error();
            spdlog::info("{} is loaded when somebody asks for it: there is no room beside the models before it", name);
            continue;
        }
        if (Status read = read_weights(known, *pool, progress); !read) return std::move(read).error();
        taken += needed;
    }
    return Ok{};
}

Status EngineRoom::read_weights(KnownModel& known, ThreadPool& loaders, const OnLoad& progress) {
    auto file = model::GgufFile::open(known.path);
    if (!file) return std::move(file).error();
    // Its child has read this file and no other.
    if (stamp_of(known.path) != known.stamp)
        return bad_input(
            fmt::format("{} was changed since the server started; start it again to serve the new file", known.path));
    auto spec = model::read_spec(*file);
    if (!spec) return std::move(spec).error();
    auto loaded = model::Model::load(*file, *std::move(spec), loaders, [&](model::LoadProgress p) {
        return progress(known.card.name, p.done_bytes, p.total_bytes);
    });
    if (!loaded) return std::move(loaded).error();
    known.model = *std::move(loaded);
    return Ok{};
}

Status EngineRoom::load(KnownModel& known, ThreadPool& loaders, const OnLoad& progress) {
    if (Status read = read_weights(known, loaders, progress); !read) return read;
    executor->place(known.facts.model, *known.model, pages_of(known));
    return Ok{};
}

void EngineRoom::unload(KnownModel& known) {
    executor->remove(known.facts.model);
    known.model.reset();
    ::malloc_trim(0);  // what steps of it worked in goes back too
}

std::vector<uint32_t> EngineRoom::pages_of(const KnownModel& known) const {
    std::vector<uint32_t> pages;
    for (const PageGroupFacts& group : known.facts.groups)
        pages.push_back(
            static_cast<uint32_t>(std::min<uint64_t>(house.page_bytes / group.bytes_per_page, UINT32_MAX - 1)));
    return pages;
}

ModelId EngineRoom::place(const KnownModel& known, engine::CpuExecutor& other) const {
    return other.add(*known.model, pages_of(known));
}

/// Caps each model's context so that one full request fits the budget; refuses one that was asked for and does not, and
/// leaves it out where it was only found.
Status EngineRoom::fit_contexts(const ComputeSettings& settings) {
    for (auto known = models.begin(); known != models.end();) {
        const uint32_t fits = sched::longest_sequence(house, known->facts);
        Status could = Ok{};
        if (fits == 0)
            could = too_few_pages(known->card.name, house.page_bytes);
        else if (settings.context != 0 && fits < settings.context && !known->drafts)
            could = Error{ErrorCode::no_memory,
                          fmt::format("a context of {} tokens needs more than the {} there are for keys and values; {} "
                                      "tokens fit: raise --kv-memory or ask for less",
                                      settings.context, format_size(house.page_bytes), fits)};
        if (!could && known->at_start) return could;
        if (!could) {
            spdlog::warn("{} is left out: {}", known->path, could.error().message);
            known = models.erase(known);
            continue;
        }
        known->facts.context_tokens = std::min(known->facts.context_tokens, fits);
        ++known;
    }
    if (models.empty()) return Error{ErrorCode::not_found, "none of the models found can be run", "--models-dir"};
    return Ok{};
}

}  // namespace cadans::apps
