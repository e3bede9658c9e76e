// Why somebody waits: the exclusive causes between which every nanosecond of a request is divided.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "base/units.h"

namespace cadans::metrics {

/// In the order in which they are printed. The precedence at one instant is in receipt.h.
enum class Cause : uint8_t {
    parse,              ///< the body was read and validated
    tokenize,           ///< text became token ids
    queue,              ///< waited for its first step
    load,               ///< waited for its model
    restore,            ///< waited for saved pages
    transfer,           ///< waited for pages of another worker
    preempted,          ///< its pages were taken
    own_prefill,        ///< its prompt was computed
    others_prefill,     ///< others' prompts were computed while it could have run
    own_decode,         ///< its answer was computed
    others_decode,      ///< others' answers were
    speculation_waste,  ///< its drafts that were not accepted
    recompute,          ///< what a preemption had lost was computed again
    sample_and_text,    ///< tokens became text on the wire
    mask,               ///< a grammar was compiled, or its mask made
    client_slow,        ///< the client did not read
    scheduler,          ///< the rest: planning and hand-over between threads
};

inline constexpr uint32_t kCauses = 17;

inline constexpr std::array<const char*, kCauses> kCauseNames = {
    "parse",     "tokenize",        "queue",          "load",        "restore",       "transfer",
    "preempted", "own_prefill",     "others_prefill", "own_decode",  "others_decode", "speculation_waste",
    "recompute", "sample_and_text", "mask",           "client_slow", "scheduler"};

constexpr const char* name(Cause cause) noexcept { return kCauseNames[static_cast<uint8_t>(cause)]; }

/// Nanoseconds per cause; every cause is present, 0 where it did not occur.
struct Receipt {
    std::array<Nanos, kCauses> ns{};

    Nanos& operator[](Cause cause) noexcept { return ns[static_cast<uint8_t>(cause)]; }
    Nanos operator[](Cause cause) const noexcept { return ns[static_cast<uint8_t>(cause)]; }
    Nanos total() const noexcept { return std::accumulate(ns.begin(), ns.end(), Nanos{0}); }

    /// The cause that took the most time; of equals the first.
    Cause longest() const noexcept { return static_cast<Cause>(std::max_element(ns.begin(), ns.end()) - ns.begin()); }
};

}  // namespace cadans::metrics
