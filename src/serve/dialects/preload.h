// A request that only wants a model to be in memory, or out of it: Ollama's empty prompt.
#pragma once

#include <functional>
#include <optional>

#include "serve/dialects/generation_request.h"
#include "serve/http/http_message.h"
#include "serve/models/model_keeper.h"

namespace cadans::serve {

/// Thread rule: that of the keeper, from begin() on.
class Preload final : public ModelWaiter {
  public:
    Preload(GenerationRequest request, Nanos accepted) : request_(std::move(request)), accepted_(accepted) {}
    ~Preload() override {
        if (keeper_ != nullptr) keeper_->withdraw(*this);
    }

    std::function<void()> on_change;  ///< it is over

    /// keep_alive 0 lets the model go when nobody uses it, and is over at once.
    void begin(ModelKeeper& keeper);
    bool over() const noexcept { return over_; }
    HttpReply reply() const;  ///< once it is over

    void load_begins(Nanos now) override { load_begin_ = load_begin_.value_or(now); }
    void load_goes_on() override {}
    void let_in(Stay stay, Nanos now) override;
    void refused(const Error& error, Nanos now) override;

  private:
    GenerationRequest request_;
    Nanos accepted_;
    ModelKeeper* keeper_ = nullptr;
    std::optional<Nanos> load_begin_;
    Nanos load_time_ = 0;
    std::optional<Error> failure_;
    bool over_ = false;
};

}  // namespace cadans::serve
