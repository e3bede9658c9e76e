// Which boxes should do what: every way to place the phases on so many boxes, and what each way serves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/capacity.h"
#include "sim/cluster.h"
#include "sim/machine.h"

namespace cadans::sim {

/// A kind of box that one has, or might buy.
struct Box {
    std::string name;
    Fit fit;
    Room room;
    std::optional<double> price = {};  ///< of one, in any currency
};

/// Boxes of one kind that share, or some that read and some that write, each all of one kind.
struct Placement {
    uint32_t shared = 0, prefill = 0, decode = 0;
    size_t kind = 0;         ///< of those that share or read
    size_t decode_kind = 0;  ///< of those that write

    bool split() const noexcept { return shared == 0; }
    uint32_t boxes() const noexcept { return shared + prefill + decode; }
};

/// "4 shared", "3 prefill + 1 decode"; with more than one kind, their names.
std::string name_of(const Placement& placement, std::span<const Box> boxes);

/// Shared on `count` boxes of each kind, then every split of two kinds (also of one) with p + d = `count`.
std::vector<Placement> placements_of(size_t kinds, uint32_t count);

/// Of all boxes together; absent where a price is.
std::optional<double> price_of(const Placement& placement, std::span<const Box> boxes);

/// What is asked of every placement alike.
struct Terms {
    std::string policy = "cadence";
    Promise promise;
    StepCost cost;  ///< what the promise goes by, whichever boxes there are
    LinkSpeed link = {};
    KvShape kv = {};
    uint64_t seed = 1;
};

/// The promise with all its limits times `scale`.
Promise scaled(const Promise& promise, double scale);

/// The cluster of a placement; nobody is refused at it for there being `queue` who wait. Errors: as machine_of().
Result<ClusterSpec> cluster_of(const Placement& placement, std::span<const Box> boxes, const Terms& terms,
                               uint32_t queue);

/// How a placement fared in one run.
struct Service {
    double rate = 0;      ///< requests a second that came
    double attained = 0;  ///< share of them that kept the promise
    std::optional<Spread> ttft = {}, per_token = {};
    double reading_busy = 0,
           writing_busy = 0;      ///< share of time that boxes of each part compute; the same where shared
    double link_busy = 0;         ///< share of time in which the busiest link moves pages
    Nanos exposed = 0, held = 0;  ///< mean of those whose pages moved; as Crossings
    Nanos wait_per_token = 0;     ///< of these: what waiting for pages adds to the mean time per output token
};

struct Found {
    Placement placement;
    double goodput = 0;  ///< requests a second, 90 % of which keep the promise; 0: none; may be infinite
    Service at_goodput;  ///< at that rate, or at the smallest that was tried
    std::optional<double> tightest = {};  ///< the promise times this is still kept at the rate that was given
};

/// The search of DistServe for one placement: bisection of the rate in a simulation of the cluster (to kGrain). The
/// policies aim at the promise. The terms' policy must be one that there is. Thread rule: a value.
/// Source: Zhong et al. 2024 (DistServe) section 4, algorithm 1.
class PlacementSearch {
  public:
    /// All outlive the search; the workload is played as long as it is, only its rate changes.
    PlacementSearch(std::span<const Box> boxes, const Terms& terms, const Workload& workload);

    /// A rate at which requests hardly meet.
    double low_rate() const noexcept { return first_rate_ / 100; }

    double goodput(const Placement& placement) const;
    Service serve(const Placement& placement, double rate) const;

    /// The least scale of the promise that is still kept at that rate; none where not even the promise times
    /// kMostScale is.
    std::optional<double> tightest(const Placement& placement, double rate) const;

    static constexpr double kMostScale = 64;

  private:
    bool keeps_at(const Placement& placement, double rate, double scale) const;

    std::span<const Box> boxes_;
    const Terms& terms_;
    const Workload& workload_;
    double first_rate_;  ///< where the search begins: about what one box serves
};

}  // namespace cadans::sim
