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
#include "model/weights.h"
#include "sched/admission.h"
#include "serve/model_card.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace cadans::apps {

/// A model ready to be computed, with its words. Kept where it is: others borrow.
struct LoadedModel {
    std::unique_ptr<model::Model> model;
    std::unique_ptr<text::Tokenizer> tokenizer;
    std::unique_ptr<text::ChatTemplate> chat_template;  ///< null: the file has none
    serve::ModelCard card;
    ModelFacts facts;
    std::string fingerprint;  ///< of its tensors' names, shapes and types: what its speed depends on
};

/// Told about each model's bytes as they are read; returning false stops with `cancelled`.
using OnLoad = std::function<bool(const std::string& name, uint64_t done_bytes, uint64_t total_bytes)>;

/// Owns what a step needs. Members are in the order in which they depend on each other.
struct EngineRoom {
    /// Errors: those of reading and loading models, settings that cannot be kept; each says what to do.
    static Result<std::unique_ptr<EngineRoom>> open(const ComputeSettings& settings, const OnLoad& progress);

    const kernels::KernelTable* table = nullptr;
    std::unique_ptr<ThreadPool> pool;
    std::vector<LoadedModel> models;
    std::unique_ptr<engine::CpuExecutor> executor;
    sched::House house;
};

/// The file that FILE_OR_NAME means: a path, or a name in the model folder. Errors: not_found, with what to do.
Result<std::string> find_model_file(const std::string& file_or_name);

/// $CADANS_HOME, else $XDG_CACHE_HOME/cadans, else ~/.cache/cadans; with /models behind it.
std::string models_folder();

}  // namespace cadans::apps
