#include "engine/mask_maker.h"

#include <algorithm>
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
    const auto rows_of = [](const StepItem& item) { return size_t{1} + item.drafts; };
    for (size_t i = 0; i < items.size(); i++) {
        if (items[i].constraint == nullptr || !items[i].sample) continue;
        masks_[i].item = &items[i];
        words += rows_of(items[i]) * words_of(items[i]);
    }
    if (words == 0) return;
    if (words_.size() < words) words_.resize(words);
    size_t first = 0;
    for (Mask& mask : masks_) {
        if (mask.item == nullptr) continue;
        mask.words = words_of(*mask.item);
        mask.bits = std::span(words_).subspan(first, rows_of(*mask.item) * mask.words);
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
void MaskMaker::make(Mask& mask) noexcept {
    const StepItem& item = *mask.item;
    const std::span<const TokenId> drafts = item.known.last(item.drafts);
    ConstraintState at = item.constraint_at;
    try {
        for (uint32_t row = 0;; row++) {
            const std::span<uint64_t> bits = mask.bits.subspan(row * mask.words, mask.words);
            if (!item.constraint->allowed(at, bits)) return;
            mask.some = row + 1;
            if (row == item.drafts) return;
            const uint32_t next = index(drafts[row]);
            if ((bits[next / 64] >> (next % 64) & 1) == 0) return;
            at = item.constraint->after(at, drafts[row]);
            if (item.constraint->complete(at)) return;
        }
    } catch (const std::exception&) {
        return;
    }
}

void MaskMaker::work() noexcept {
    while (true) {
        state_.wait(idle);
        if (state_ == leaving) return;
        for (Mask& mask : masks_)
            if (mask.item != nullptr) make(mask);
        state_ = idle;
        state_.notify_one();
    }
}

}  // namespace cadans::engine
