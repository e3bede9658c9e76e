#include "engine/mask_maker.h"

#include <exception>

namespace cadans::engine {

MaskMaker::~MaskMaker() {
    if (!thread_.joinable()) return;
    wait();
    state_ = leaving;
    state_.notify_one();
}

void MaskMaker::begin(std::span<const StepItem> items, std::span<const uint32_t> vocab) {
    masks_.assign(items.size(), {});
    size_t words = 0;
    const auto words_of = [&](const StepItem& item) { return (size_t{vocab[index(item.model)]} + 63) / 64; };
    for (size_t i = 0; i < items.size(); i++) {
        if (items[i].constraint == nullptr || !items[i].sample) continue;
        masks_[i].item = &items[i];
        words += words_of(items[i]);
    }
    if (words == 0) return;
    if (words_.size() < words) words_.resize(words);
    size_t first = 0;
    for (Mask& mask : masks_) {
        if (mask.item == nullptr) continue;
        mask.bits = std::span(words_).subspan(first, words_of(*mask.item));
        first += mask.bits.size();
    }
    if (!thread_.joinable()) thread_ = std::jthread([this] { work(); });
    state_ = asked;
    state_.notify_one();
}

void MaskMaker::wait() noexcept {
    while (state_ == asked) state_.wait(asked);
}

/// The machine's failures end here: a constraint that gets no memory fails its own item.
bool MaskMaker::make(const Mask& mask) noexcept {
    try {
        return mask.item->constraint->allowed(mask.item->constraint_at, mask.bits);
    } catch (const std::exception&) {
        return false;
    }
}

void MaskMaker::work() noexcept {
    while (true) {
        state_.wait(idle);
        if (state_ == leaving) return;
        for (Mask& mask : masks_)
            if (mask.item != nullptr) mask.some = make(mask);
        state_ = idle;
        state_.notify_one();
    }
}

}  // namespace cadans::engine
