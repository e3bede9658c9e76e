// Several workers on one clock: a front that places requests, and pages that move where the phases live apart.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "sim/event_heap.h"
#include "sim/link.h"
#include "sim/simulation.h"
#include "sim/workload.h"

namespace cadans::sim {

/// What a worker does of a request.
enum class Role : uint8_t {
    shared,   ///< all of it
    prefill,  ///< reads the prompt and draws the first token
    decode,   ///< draws the others, with keys and values that a prefill worker computed
};

struct Member {
    Machine machine;
    Role role = Role::shared;
};

/// Either all members share, or at least one reads and at least one writes, and none shares. Plain values.
struct ClusterSpec {
    std::vector<Member> members;
    LinkSpeed link = {};  ///< into each decode worker
    KvShape kv = {};
};

/// What one member has done.
struct MemberFigures {
    Role role = Role::shared;
    uint64_t steps = 0;
    Nanos busy = 0;             ///< time in steps
    Nanos link_busy = 0;        ///< time in which pages came in
    uint64_t leased_bytes = 0;  ///< of pages that a sequence holds, in units of House::page_bytes
};

/// Of all whose pages moved, summed.
struct Crossings {
    uint64_t moved = 0;   ///< requests
    uint64_t tokens = 0;  ///< of their prompts
    Nanos exposed = 0;    ///< from the end of a prompt, or from the room for it if that came later, to its last page
    Nanos held = 0;       ///< from the end of a prompt until a decode worker had room for it
};

/// Each member is inbox, loop, scheduler and fanout of the server, and an executor of its own. A cluster of one that
/// shares is a Simulation.
///
/// Shared: a request goes to the worker with the shortest predicted time to first token: what its scheduler foretells a
/// newcomer, less what the front sent there before of a prompt that begins alike, more what it sent and the scheduler
/// has not heard yet. Who refuses, refuses to the next one; who is refused by all is refused.
///
/// Split: the same among prefill workers that have room for the prompt, which keep its pages until they are pulled;
/// without room requests wait in line at the front. A decode worker is chosen at the prompt's first rows: of those with
/// room, the one with the shortest predicted step. With room nowhere the prompt is read all the same, and pulled in its
/// turn when there is: prefill memory takes up what decode cannot (back-pressure). A sequence that a decode worker
/// preempts is computed again there.
///
/// Source: Zhong et al. 2024 (DistServe) section 4.3. Thread rule: one thread. The same workload and
/// spec give the same fates.
class Cluster {
  public:
    using OnEnd = Simulation::OnEnd;

    /// The workload outlives the cluster. At a split one's front as many may run and wait as at its members together.
    Cluster(const ClusterSpec& spec, const Workload& workload);
    ~Cluster();

    /// As Simulation::run(): until everybody has ended, or `on_end` says stop.
    void run(const OnEnd& on_end);

    std::vector<MemberFigures> figures() const;
    const Crossings& crossings() const noexcept { return crossings_; }
    Nanos now() const noexcept { return now_; }

    /// What holds between any two events; stops the process where something is off.
    void check_invariants() const;

  private:
    struct Flight;
    struct Worker;

    void arrive(uint32_t row);
    void arrive_shared(std::unique_ptr<Flight> flight);
    void arrive_split(std::unique_ptr<Flight> flight);
    void serve_line();
    bool send(Flight& flight, Worker& worker, uint32_t tokens);
    std::vector<Worker*> by_first_token(uint32_t row, const std::vector<Worker*>& among);

    void turn(Worker& worker);
    void tell(Worker& worker, Flight& flight, const Event& event);
    void end(Flight& flight, metrics::Outcome outcome);

    void filled(Flight& flight, const Event& event);
    void pull(Flight& flight, Nanos begin, Nanos end);
    void serve_bridge();
    Worker* writer_for(const Flight& flight) const;
    void has_read(Worker& worker, Flight& flight, const Event& event);
    void pulled(Flight& flight);

    const Workload& workload_;
    const bool split_;
    uint32_t places_ = 0;  ///< of a split cluster: requests that may be inside
    uint32_t inside_ = 0;
    Nanos now_ = 0;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<Worker*> readers_, writers_;        ///< of a split cluster; of a shared one all read
    std::vector<std::unique_ptr<Flight>> flights_;  ///< by sequence number
    std::deque<Flight*> line_;                      ///< at the front, without a prefill worker
    std::deque<Flight*> bridge_;                    ///< with rows, without a decode worker
    EventHeap heap_;
    std::vector<Event> events_;
    Crossings crossings_;
    OnEnd on_end_;
    bool stopped_ = false;
};

}  // namespace cadans::sim
