// Models in and out of a room while others are computed in it: the doors' ModelLoader.
#pragma once

#include "apps/engine_room.h"
#include "runtime/fanout.h"
#include "runtime/inbox.h"
#include "serve/models/model_keeper.h"

namespace cadans::apps {

/// A load has threads of its own that give way to the engine's: who is being answered feels little of it, and nobody
/// loads slower on a machine that rests. The room, inbox and fanout outlive it. Thread rule: as ModelLoader says.
class RoomLoader final : public serve::ModelLoader {
  public:
    /// `memory`: for all models together; none: what is free. `measures`: a model whose steps were never measured is
    /// measured when it is loaded.
    RoomLoader(EngineRoom& room, runtime::Inbox& inbox, const runtime::Fanout& fanout, std::optional<uint64_t> memory,
               bool measures)
        : room_(room), inbox_(inbox), fanout_(fanout), memory_(memory), measures_(measures) {}

    Result<std::optional<StepCost>> load(ModelId model, const OnShare& progress) override;
    void unload(ModelId model) override;
    uint64_t free_bytes(uint64_t resident) const override;

  private:
    Result<std::optional<StepCost>> bring_in(KnownModel& known, const OnShare& progress);

    EngineRoom& room_;
    runtime::Inbox& inbox_;
    const runtime::Fanout& fanout_;
    std::optional<uint64_t> memory_;
    bool measures_;
};

}  // namespace cadans::apps
