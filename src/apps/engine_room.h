// Everything between the inbox and the fanout, put together: models, executor, scheduler, loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/settings.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/cpu_executor.h"
#include "kernels/table.h"
#include "model/memory.h"
#include "model/weights.h"
#include "sched/admission.h"
#include "serve/models/model_card.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace cadans::apps {

/// A model whose file has been read up to its weights: everything that is told of it, and its words. The weights are
/// there while it is in memory. Kept where it is: others borrow.
struct KnownModel {
    std::unique_ptr<model::Model> model;  ///< null: not in memory
    std::unique_ptr<text::Tokenizer> tokenizer;
    std::unique_ptr<text::ChatTemplate> chat_template;  ///< null: the file has none
    serve::ModelCard card;
    ModelFacts facts;
    std::string fingerprint;  ///< of its tensors' names, shapes and types: what its speed depends on
    std::string path;
    uint64_t stamp = 0;  ///< of the file as it was read
    model::MemoryEstimate memory;
    bool at_start = false;         ///< named by itself: loaded before the doors open
    bool drafts = false;           ///< it guesses for others, and is asked for nothing itself
    std::optional<StepCost> cost;  ///< of its steps, where that is known
};

/// Told about each model's bytes as they are read; returning false stops with `cancelled`.
using OnLoad = std::function<bool(const std::string& name, uint64_t done_bytes, uint64_t total_bytes)>;

/// Owns what a step needs. Members are in the order in which they depend on each other.
struct EngineRoom {
    /// Reads every model's words, and the weights of those that are named by themselves as far as they fit; at least
    /// those of the first. Errors: those of reading and loading models, settings that cannot be kept; each says what to
    /// do. A model that is only found in a folder and cannot be run is left out with a warning.
    static Result<std::unique_ptr<EngineRoom>> open(const ComputeSettings& settings, const OnLoad& progress);

    /// Reads the weights, with the threads of `loaders`, and makes the model runnable. Errors: those of Model::load(),
    /// bad_input where the file is not what it was; then nothing is left behind.
    Status load(KnownModel& known, ThreadPool& loaders, const OnLoad& progress);
    /// Gives weights and pages back to the system.
    void unload(KnownModel& known);
    /// Makes it runnable by another executor than the room's, under a number of that one.
    ModelId place(const KnownModel& known, engine::CpuExecutor& other) const;

    const kernels::KernelTable* table = nullptr;
    std::unique_ptr<ThreadPool> pool;
    std::vector<KnownModel> models;  ///< by ModelId
    engine::EngineLimits limits;
    std::unique_ptr<engine::CpuExecutor> executor;
    sched::House house;

  private:
    std::vector<uint32_t> pages_of(const KnownModel& known) const;
    Status add_draft_model(const ComputeSettings& settings);
    Status fit_contexts(const ComputeSettings& settings);
    Status read_weights(KnownModel& known, ThreadPool& loaders, const OnLoad& progress);
    Status load_first(const ComputeSettings& settings, const OnLoad& progress);
};

/// The file that FILE_OR_NAME means: a path, or a name in the model folder. Errors: not_found, with what to do.
Result<std::string> find_model_file(const std::string& file_or_name);

/// $CADANS_HOME, else $XDG_CACHE_HOME/cadans, else ~/.cache/cadans; with /models behind it.
std::string models_folder();

}  // namespace cadans::apps
