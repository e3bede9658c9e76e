#include "apps/calibration.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/random.h"
#include "engine/machine_limits.h"
#include "kernels/probe.h"

namespace cadans::apps {
namespace fs = std::filesystem;
namespace {

constexpr size_t kTableFileBytes = 1 << 16;
constexpr uint32_t kPagesToMeasureWith = 160;  ///< enough for the longest context of the design

/// Another program is another speed; its file's size and time tell builds of one version apart.
std::string this_build() {
    std::error_code ignored;
    const fs::path self = "/proc/self/exe";
    const auto target = fs::read_symlink(self, ignored);
    return fmt::format("{} {} {}", CADANS_VERSION, fs::file_size(target, ignored),
                       fs::last_write_time(target, ignored).time_since_epoch().count());
}

engine::CostKey key_of(const EngineRoom& room, const KnownModel& known) {
    return {known.card.name,
            known.fingerprint,
            engine::cpu_name(),
            room.pool->threads(),
            room.table->name,
            this_build(),
            room.limits.kv == kernels::KvType::q8 ? "q8" : "f16"};
}

/// One file for each model, machine and thread plan: another build takes the place of the last one's.
std::string file_of(const engine::CostKey& key) {
    uint64_t hash = 0;
    for (const char c : fmt::format("{}|{}|{}|{}|{}", key.fingerprint, key.cpu, key.threads, key.isa, key.kv))
        hash = mix64(hash ^ static_cast<unsigned char>(c));
    return fmt::format("{}/cost-{:016x}.json", state_folder(), hash);
}

std::optional<engine::CostTable> kept(const EngineRoom& room, const KnownModel& known) {
    const engine::CostKey key = key_of(room, known);
    const std::string path = file_of(key);
    if (!fs::exists(path)) return std::nullopt;
    const auto text = read_text(path, kTableFileBytes);
    if (!text) return std::nullopt;
    auto table = engine::cost_table_from_json(*text);
    if (!table || !table->key.covers(key)) return std::nullopt;
    return *std::move(table);
}

/// Under a name of its own first, so that nobody ever reads half a table.
void keep(const std::string& path, const std::string& text) {
    std::error_code trouble;
    fs::create_directories(fs::path(path).parent_path(), trouble);
    const std::string draft = fmt::format("{}.{}", path, ::getpid());
    bool written = false;
    {
        std::ofstream out(draft, std::ios::binary);
        out << text;
        out.close();
        written = out.good();
    }
    if (written) fs::rename(draft, path, trouble);
    if (written && !trouble) return;
    fs::remove(draft, trouble);
    spdlog::warn("what was measured could not be kept in {}: it will be measured again at the next start", path);
}

/// `number` is the model's in that executor.
engine::CostTable measure(
    const EngineRoom& room, const KnownModel& known, engine::CpuExecutor& executor, ModelId number,
    const OnMeasure& progress, const std::function<bool()>& undisturbed = [] { return true; }) {
    engine::CostTable table;
    table.key = key_of(room, known);
    engine::CalibrationSetup setup;
    setup.facts = known.facts;
    setup.facts.model = number;
    setup.max_rows = room.house.limits.max_rows;
    setup.max_items = room.house.limits.max_running;
    uint64_t page_bytes = 0;
    for (const PageGroupFacts& group : known.facts.groups) page_bytes += group.bytes_per_page;
    table.kv_token_bytes = page_bytes / kPageTokens;
    if (known.model != nullptr) table.layers = known.model->spec().n_layers;
    setup.pages = static_cast<uint32_t>(
        std::clamp<uint64_t>(room.house.page_bytes / page_bytes, 1, uint64_t{kPagesToMeasureWith}));

    bool whole = true, alone = undisturbed();
    executor.fill_pages(number, setup.pages);
    table.fit = engine::calibrate(executor, setup, [&](uint64_t done, uint64_t total) {
        const bool go_on = progress(known.card.name, done, total);
        whole = whole && go_on;
        alone = alone && undisturbed();
        return go_on;
    });
    executor.drop_pages(number, setup.pages);
    if (whole && alone) keep(file_of(table.key), engine::to_json(table));
    return table;
}

}  // namespace

std::string state_folder() {
    const auto set = [](const char* name) -> const char* {
        const char* value = std::getenv(name);
        return value != nullptr && *value != 0 ? value : nullptr;
    };
    if (const char* home = set("CADANS_HOME")) return std::string(home) + "/state";
    if (const char* state = set("XDG_STATE_HOME")) return std::string(state) + "/cadans";
    const char* home = set("HOME");
    return std::string(home != nullptr ? home : ".") + "/.local/state/cadans";
}

engine::CostTable cost_table_of(EngineRoom& room, KnownModel& known, bool anew, const OnMeasure& progress) {
    if (!anew) {
        if (auto found = kept(room, known)) return *std::move(found);
    }
    return measure(room, known, *room.executor, known.facts.model, progress);
}

StepCost measure_beside(const EngineRoom& room, const KnownModel& known, ThreadPool& loaders,
                        const std::function<bool()>& undisturbed, const OnMeasure& progress) {
    if (const auto found = kept(room, known)) return found->fit.cost;
    engine::CpuExecutor own(*room.table, loaders, room.limits);
    return measure(room, known, own, room.place(known, own), progress, undisturbed).fit.cost;
}

serve::MachineLimits machine_limits(EngineRoom& room) {
    constexpr size_t kBlock = size_t{128} << 20;  // beyond the caches of the machines that this runs on
    uint64_t hash = 0;
    const std::string key = fmt::format("{}|{}|{}", engine::cpu_name(), room.pool->threads(), room.table->name);
    for (const char c : key) hash = mix64(hash ^ static_cast<unsigned char>(c));
    const std::string path = fmt::format("{}/limits-{:016x}.json", state_folder(), hash);
    if (fs::exists(path)) {
        const auto text = read_text(path, kTableFileBytes);
        const auto known = text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
        if (known.is_object() && known.value("machine", "") == key && known.value("build", "") == this_build())
            return {known.value("operations_per_second", 0.0), known.value("bytes_per_second", 0.0)};
    }
    const serve::MachineLimits limits{kernels::measure_dot_peak(*room.table, *room.pool),
                                      engine::measure_read_bandwidth(*room.pool, kBlock)};
    const nlohmann::ordered_json table = {{"machine", key},
                                          {"build", this_build()},
                                          {"operations_per_second", limits.operations_per_second},
                                          {"bytes_per_second", limits.bytes_per_second}};
    keep(path, table.dump() + "\n");
    return limits;
}

void measure_costs(EngineRoom& room, const OnMeasure& progress) {
    room.house.costs.clear();
    for (KnownModel& known : room.models) {
        if (known.model != nullptr)
            known.cost = cost_table_of(room, known, false, progress).fit.cost;
        else if (const auto found = kept(room, known))
            known.cost = found->fit.cost;
        room.house.costs.push_back(known.cost.value_or(StepCost{}));
    }
}

}  // namespace cadans::apps
