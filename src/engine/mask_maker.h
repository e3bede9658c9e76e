// Masks of a step's constrained items, made on a thread of their own while the step computes.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "flow/step.h"

namespace cadans::engine {

/// An item has one for its last known token and one for every draft, made as if those before it had come; none behind a
/// draft that may not come or that completes the answer.
///
/// Usage: begin(), compute, wait(), then read the masks; each item's constraint is then free for this thread to use.
///
/// Thread rule: one thread, that of the steps; the maker's own works between begin() and wait() only.
/// Cost: no allocation here once the buffers have grown; a constraint may allocate at a state that is new to it.
class MaskMaker {
  public:
    MaskMaker() = default;
    ~MaskMaker();
    MaskMaker(const MaskMaker&) = delete;
    MaskMaker& operator=(const MaskMaker&) = delete;

    /// Starts on the masks of all items that are drawn from and have a constraint. The items stay as they are until
    /// wait() has returned.
    ///
    /// vocab   of each model, by its number: how many bits a mask has
    void begin(std::span<const StepItem> items, std::span<const uint32_t> vocab);

    /// Returns when all masks are there.
    void wait() noexcept;

    /// Of item i of begin(), behind `drafts` of its drafts; empty: it has no constraint, or is not drawn from.
    std::span<const uint64_t> mask(size_t item, uint32_t drafts) const noexcept {
        const Mask& first = masks_[item];
        return first.bits.subspan(drafts * first.words, first.words);
    }
    /// False: no token may come there, nor the end, or there was no memory to find out, or the answer never gets there.
    bool some(size_t item, uint32_t drafts) const noexcept {
        return masks_[item].bits.empty() || drafts < masks_[item].some;
    }

  private:
    struct Mask {
        const StepItem* item = nullptr;
        std::span<uint64_t> bits;  ///< of all its rows that are drawn from
        size_t words = 0;          ///< of one
        uint32_t some = 0;         ///< of the rows, the first so many have a mask
    };
    enum State : uint32_t { idle, asked, leaving };

    static void make(Mask& mask) noexcept;
    void work() noexcept;

    std::vector<Mask> masks_;
    std::vector<uint64_t> words_;
    std::atomic<uint32_t> state_{idle};
    std::jthread thread_;  ///< from the first constrained item on; last: it uses the others
};

}  // namespace cadans::engine
