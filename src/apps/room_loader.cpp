#include "apps/room_loader.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include "apps/calibration.h"
#include "base/clock.h"
#include "model/memory.h"

namespace cadans::apps {

namespace {

constexpr int kPolitely = 10;

void give_way(ThreadPool& threads) {
    threads.run([](uint32_t, uint32_t) {
        (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kPolitely);  // of this thread alone
    });
}

/// What a client can do nothing about is not its mistake.
Error as_seen_by_clients(Error error) {
    if (error.code != ErrorCode::cancelled && error.code != ErrorCode::no_memory) error.code = ErrorCode::unavailable;
    error.where.clear();
    return error;
}

}  // namespace

Result<std::optional<StepCost>> RoomLoader::load(ModelId model, const OnShare& progress) {
    KnownModel& known = room_.models[index(model)];
    Error error;
    try {
        auto brought = bring_in(known, progress);
        if (brought) return brought;
        error = std::move(brought).error();
    } catch (const std::bad_alloc&) {
        error = {ErrorCode::no_memory, fmt::format("there is not enough memory to load {}", known.card.name), {}};
    } catch (const std::exception& thrown) {
        error = {ErrorCode::unavailable, thrown.what(), {}};
    }
    room_.unload(known);
    if (error.code == ErrorCode::cancelled) return error;
    spdlog::warn("{} could not be loaded: {}", known.card.name, error.message);
    return as_seen_by_clients(std::move(error));
}

Result<std::optional<StepCost>> RoomLoader::bring_in(KnownModel& known, const OnShare& progress) {
    const Nanos begin = steady_now();
    ThreadPool loaders(room_.pool->threads());
    give_way(loaders);
    const bool measure = measures_ && !known.cost;
    const double of_weights = measure ? 0.5 : 1.0;
    bool go_on = true;
    const auto part = [&](double from, double share, uint64_t done, uint64_t total) {
        const double here = total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
        return go_on = go_on && progress(from + share * here);
    };
    Status loaded = room_.load(known, loaders, [&](const std::string&, uint64_t done, uint64_t total) {
        return part(0.0, of_weights, done, total);
    });
    if (!loaded) return std::move(loaded).error();
    std::optional<StepCost> cost;
    if (measure) {
        cost = measure_beside(
            room_, known, loaders, [this] { return fanout_.occupancy().running == 0; },
            [&](const std::string&, uint64_t done, uint64_t total) { return part(of_weights, 0.5, done, total); });
        if (!go_on) return Error{ErrorCode::cancelled, fmt::format("loading {} was stopped", known.card.name), {}};
        known.cost = cost;
        inbox_.learn(known.facts.model, *cost);
    }
    spdlog::info("{} loaded in {}: {} of weights", known.card.name, format_duration(steady_now() - begin),
                 format_size(known.model->weight_bytes()));
    return cost;
}

void RoomLoader::unload(ModelId model) {
    KnownModel& known = room_.models[index(model)];
    inbox_.forget(model);
    room_.unload(known);
    spdlog::info("{} unloaded", known.card.name);
}

/// Pages that nobody has touched yet are promised all the same.
uint64_t RoomLoader::free_bytes(uint64_t resident) const {
    const Occupancy pages = fanout_.occupancy();
    const uint64_t total = room_.house.page_bytes;
    const uint64_t promised = total - std::min(total, pages.bytes_used + pages.bytes_cached);
    const uint64_t free = model::available_memory().bytes;
    const uint64_t of_machine = free - std::min(free, promised);
    if (!memory_) return of_machine;
    return std::min(of_machine, *memory_ - std::min(*memory_, resident));
}

}  // namespace cadans::apps
