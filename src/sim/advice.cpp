#include "sim/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace cadans::sim {
namespace {

constexpr double kFull = 0.7;    ///< a link that moves pages for so much of the time holds them up
constexpr double kUneven = 0.7;  ///< of two parts, one is busy for less than this share of the other's time
constexpr double kFelt = 0.25;   ///< of the promised time per token: so much of it is no longer a trifle

/// The best of a form; null where there is none.
const Found* best_of(std::span<const Found> found, bool split) {
    const Found* best = nullptr;
    for (const Found& one : found) {
        if (one.placement.split() != split) continue;
        const bool tighter = best != nullptr && one.goodput == best->goodput && one.tightest &&
                             (!best->tightest || *one.tightest < *best->tightest);
        if (best == nullptr || one.goodput > best->goodput || tighter) best = &one;
    }
    return best;
}

std::string rate(double requests_per_second) {
    return requests_per_second >= 0.1 ? fmt::format("{:.3g} requests a second", requests_per_second)
                                      : fmt::format("{:.3g} requests a minute", requests_per_second * 60);
}

/// Why a split serves no more than sharing.
std::string loss_of(const Found& split, const Terms& terms) {
    const Service& at = split.at_goodput;
    if (at.link_busy > kFull) return fmt::format("pages fill its link {:.0f} % of the time", 100 * at.link_busy);
    if (static_cast<double>(at.wait_per_token) > kFelt * static_cast<double>(terms.promise.gap))
        return fmt::format("answers wait {} on the average for the pages of their prompts",
                           format_duration(at.exposed + at.held));
    const double less = std::min(at.reading_busy, at.writing_busy), more = std::max(at.reading_busy, at.writing_busy);
    if (less < kUneven * more)
        return fmt::format(
            "boxes that only read are busy {:.0f} % of the time and boxes that only write {:.0f} %, so one part idles "
            "while the other is full",
            100 * at.reading_busy, 100 * at.writing_busy);
    const Placement& p = split.placement;
    return fmt::format(
        "prompts wait for {} box{} instead of {}, and steps that read and write together keep the gap "
        "here anyway",
        p.prefill, p.prefill == 1 ? "" : "es", p.boxes());
}

}  // namespace

const Found* choice_of(std::span<const Found> found) {
    const Found *shared = best_of(found, false), *split = best_of(found, true);
    if (split != nullptr && (shared == nullptr || split->goodput > shared->goodput * kUnsure)) return split;
    return shared != nullptr && shared->goodput > 0 && std::isfinite(shared->goodput) ? shared : nullptr;
}

std::string advice(std::span<const Found> found, std::span<const Box> boxes, const Terms& terms) {
    check(!found.empty(), "advice is about placements");
    const uint32_t count = found.front().placement.boxes();
    const std::string with = fmt::format("With {} box{}: ", count, count == 1 ? "" : "es");
    const Found *shared = best_of(found, false), *split = best_of(found, true), *choice = choice_of(found);
    if (choice == nullptr) {
        if (shared != nullptr && shared->goodput > 0)
            return with + "no rate breaks the promise; the load has too few requests to tell placements apart.";
        return with +
               "no placement keeps the promise, however few requests come; loosen --slo or --slo-ttft, or take "
               "faster boxes.";
    }
    if (choice->placement.split()) {
        const std::string other =
            shared == nullptr || shared->goodput == 0
                ? "sharing keeps the promise at no rate"
                : fmt::format("{:.2f} times what sharing serves", choice->goodput / shared->goodput);
        return with + fmt::format(
                          "split, {}: {} keep the promise, {}, because no prompt is read between the words of "
                          "others.",
                          name_of(choice->placement, boxes), rate(choice->goodput), other);
    }
    if (split == nullptr)
        return with + fmt::format("{}: {} keep the promise.", name_of(choice->placement, boxes), rate(choice->goodput));
    if (split->goodput == 0)
        return with + fmt::format("do not split; {}: {} keep the promise, and no split keeps it at any rate: {}.",
                                  name_of(choice->placement, boxes), rate(choice->goodput), loss_of(*split, terms));
    return with + fmt::format(
                      "do not split; {}: {} keep the promise, and the best split ({}) serves {:.2f} times that: "
                      "{}.",
                      name_of(choice->placement, boxes), rate(choice->goodput), name_of(split->placement, boxes),
                      split->goodput / choice->goodput, loss_of(*split, terms));
}

}  // namespace cadans::sim
