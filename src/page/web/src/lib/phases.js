// The seventeen causes of a receipt, gathered into the six kinds of time that have a colour.

export const kPhases = ["load", "queue", "read", "held", "write", "other"];

const kPhaseOf = {
    load: "load", restore: "load", transfer: "load",
    queue: "queue",
    own_prefill: "read",
    others_prefill: "held", others_decode: "held", preempted: "held", recompute: "held",
    own_decode: "write", speculation_waste: "write", mask: "write",
};

/** The kind of time that a cause is. */
export const phaseOf = (cause) => kPhaseOf[cause] ?? "other";

/** {phase: nanoseconds} of a receipt or of what a running request has spent; sums to the same total. */
export function byPhase(spent) {
    const sums = Object.fromEntries(kPhases.map((phase) => [phase, 0]));
    for (const [cause, ns] of Object.entries(spent)) sums[phaseOf(cause)] += ns;
    return sums;
}
