// Carries out planned steps on this machine's processor.
#pragma once

#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "engine/forward.h"
#include "engine/limits.h"
#include "engine/sampler.h"
#include "flow/executor.h"
#include "kernels/table.h"
#include "model/weights.h"

namespace cadans::engine {

/// The executor of the server. A step runs inside submit(), on the calling thread and the pool's.
///
/// Models are added before the first step. Thread rule: one thread. No allocation in a step.
class CpuExecutor final : public Executor {
  public:
    /// table and pool outlive this object.
    CpuExecutor(const kernels::KernelTable& table, ThreadPool& pool, const EngineLimits& limits);
    ~CpuExecutor() override;

    /// Makes a model runnable with room for `pages_of_group` pages; its id is the number of models before it.
    /// The model outlives this object.
    ModelId add(const model::Model& model, const std::vector<uint32_t>& pages_of_group);

    /// For calibration, before the first step: KvArena::fill and drop.
    void fill_pages(ModelId model, uint32_t pages);
    void drop_pages(ModelId model, uint32_t pages);

    void submit(const StepPlan& plan) override;
    const StepResult* poll() override;

  private:
    struct Resident;
    void run_model(Resident& resident, const StepPlan& plan, ModelId id);
    void read_rows(Resident& resident);

    const kernels::KernelTable& k_;
    ThreadPool& pool_;
    EngineLimits limits_;
    std::vector<std::unique_ptr<Resident>> models_;
    StepResult result_;
    bool finished_ = false;
};

}  // namespace cadans::engine
