// Brings models in when somebody asks for them and lets them go when their time is over or others need the memory.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "flow/step_cost.h"
#include "serve/models/resident_set.h"

namespace cadans::serve {

/// Puts a model's weights into memory and takes them out: what the composition root provides.
class ModelLoader {
  public:
    virtual ~ModelLoader() = default;

    /// Told the share done, 0 to 1; false stops the load with `cancelled`.
    using OnShare = std::function<bool(double share)>;

    /// When it returns, sequences of the model may be submitted. The cost of its steps, if it was measured now. A load
    /// that fails leaves nothing behind. Thread rule: one thread at a time, as unload().
    virtual Result<std::optional<StepCost>> load(ModelId model, const OnShare& progress) = 0;

    /// Gives all memory of the model back. No sequence of it is inside.
    virtual void unload(ModelId model) = 0;

    /// What a model that comes now may take, of the machine or of what is meant for models, when those that are here
    /// take `resident` bytes; not asked while one is unloaded. Thread-safe.
    virtual uint64_t free_bytes(uint64_t resident) const = 0;
};

class ModelKeeper;

/// The right to use a model: it is not unloaded meanwhile. Move-only; the keeper outlives it. Thread rule: the
/// keeper's.
class Stay {
  public:
    Stay() = default;
    Stay(Stay&& other) noexcept : keeper_(std::exchange(other.keeper_, nullptr)), model_(other.model_) {}
    Stay& operator=(Stay&& other) noexcept;
    ~Stay() { end(); }

  private:
    friend class ModelKeeper;
    Stay(ModelKeeper* keeper, ModelId model) : keeper_(keeper), model_(model) {}
    void end() noexcept;

    ModelKeeper* keeper_ = nullptr;
    ModelId model_{};
};

/// Who waits for a model. All calls come on the keeper's thread, let_in and refused once, one of them.
class ModelWaiter {
  public:
    virtual ~ModelWaiter() = default;
    virtual void load_begins(Nanos now) = 0;  ///< of its model, or one was under way when it came
    virtual void load_goes_on() = 0;          ///< a few times a second
    virtual void let_in(Stay stay, Nanos now) = 0;
    virtual void refused(const Error& error, Nanos now) = 0;
};

/// Carries out what the ResidentSet decides. Thread rule: one thread, the one that serves.
class ModelKeeper {
  public:
    /// How the keeper has things done: each returns at once.
    struct Hands {
        std::function<void(std::function<void()>)> load_thread;  ///< runs it on one other thread, in order
        std::function<void(std::function<void()>)> own_thread;   ///< from there: runs it on the keeper's
        std::function<void(Nanos span)> wake_after;              ///< calls wake() once, after it; replaces the last
    };

    /// Without a loader everything is resident and stays. The loader outlives the keeper's jobs.
    ModelKeeper(std::vector<ResidentSet::Member> members, ModelLoader* loader, Hands hands);

    /// Calls back when the model may be used: at once where it can be.
    void ask(ModelWaiter& waiter, ModelId model, std::optional<Nanos> keep);
    /// It does not want to any more. Harmless when it does not wait. A load that nobody waits for any more is stopped.
    void withdraw(const ModelWaiter& waiter);
    /// How long the model stays idle from now on.
    void keep(ModelId model, Nanos keep);

    void wake();  ///< the time asked for is over
    void stop();  ///< a load is broken off, and nothing more is begun

    const ResidentSet& models() const noexcept { return set_; }
    /// Of the load under way.
    double share_done() const noexcept { return share_; }
    /// From its order to its end, of the last load of that model here; none: there was none.
    std::optional<Nanos> last_load(ModelId model) const { return last_loads_[index(model)]; }
    uint64_t loads(ModelId model) const { return loads_[index(model)]; }  ///< that succeeded here
    /// Told when a model's steps have been measured during a load.
    std::function<void(ModelId, const StepCost&)> on_cost;

  private:
    friend class Stay;
    struct Waiting {
        ModelWaiter* waiter = nullptr;
        ModelId model{};
    };
    void leave(ModelId model);
    void pump();
    void carry_out(ResidentSet::Step step, Nanos now);
    void load(ModelId model, Nanos now);
    void unload(ModelId model);
    void loaded(ModelId model, const Result<std::optional<StepCost>>& result);
    bool wanted(ModelId model) const;
    template <class Tell>
    void tell(ModelId model, Tell&& tell_one);

    ResidentSet set_;
    ModelLoader* loader_;
    Hands hands_;
    std::map<TicketId, Waiting> waiting_;
    std::vector<std::optional<Nanos>> last_loads_;   ///< by ModelId
    std::vector<uint64_t> loads_;                    ///< by ModelId
    std::optional<std::pair<ModelId, Nanos>> load_;  ///< under way, and since when
    std::atomic<double> share_{0.0};
    std::atomic<bool> break_off_{false};
    uint32_t unloading_ = 0;  ///< models whose memory goes back at this moment: how much is free is not known
    bool stopped_ = false;
    bool pumping_ = false, pump_again_ = false;
};

}  // namespace cadans::serve
