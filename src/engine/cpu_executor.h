// Carries out planned steps on this machine's processor.
#pragma once

#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "engine/forward.h"
#include "engine/limits.h"
#include "engine/mask_maker.h"
#include "engine/sampler.h"
#include "flow/executor.h"
#include "kernels/table.h"
#include "model/weights.h"

namespace cadans::engine {

/// The executor of the server. A step runs inside submit(), on the calling thread and the pool's.
///
/// A model may come and go while steps of others run: place() and remove() may be called on another thread than the
/// steps', one at a time, when no step that names the model runs or is to come before they are done. Thread rule else:
/// one thread. No allocation in a step, but where a constraint comes to a state that is new.
class CpuExecutor final : public Executor {
  public:
    /// table and pool outlive this object.
    CpuExecutor(const kernels::KernelTable& table, ThreadPool& pool, const EngineLimits& limits);
    ~CpuExecutor() override;

    /// Makes a model runnable with room for `pages_of_group` pages; its id is the number of models before it.
    /// The model outlives this object.
    ModelId add(const model::Model& model, const std::vector<uint32_t>& pages_of_group);

    /// The same in two parts: a number, before the first step, for a model that comes later; and the model itself.
    ModelId reserve();
    void place(ModelId id, const model::Model& model, const std::vector<uint32_t>& pages_of_group);

    /// Lets go of the model and of all memory for it, its pages too. Its number stays its own.
    void remove(ModelId id);

    /// For calibration, before the first step: KvArena::fill and drop.
    void fill_pages(ModelId model, uint32_t pages);
    void drop_pages(ModelId model, uint32_t pages);

    void submit(const StepPlan& plan) override;
    const StepResult* poll() override;

  private:
    struct Resident;
    void draft(const StepPlan& plan);
    void draw_guesses(Resident& drafter, const StepPlan& plan, uint32_t pass);
    void run_model(Resident& resident, const StepPlan& plan, ModelId id);
    void read_rows(Resident& resident);
    void take_drawn(const StepPlan& plan);
    void take_item(const StepItem& item, ItemResult& out);

    const kernels::KernelTable& k_;
    ThreadPool& pool_;
    EngineLimits limits_;
    std::vector<std::unique_ptr<Resident>> models_;
    std::vector<uint32_t> vocab_;  ///< of each model, by its number; 0: not there
    MaskMaker masks_;
    StepResult result_;
    bool finished_ = false;
};

}  // namespace cadans::engine
