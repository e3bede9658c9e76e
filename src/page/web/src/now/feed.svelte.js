// What the server tells of this moment, kept for as long as it is drawn.
import { call } from "../lib/api.js";
import { byPhase } from "../lib/phases.js";
import { events } from "../lib/sse.js";

const kSecond = 1e9;
export const kWindow = 20 * kSecond;   // of a lane
const kStepWindow = 6 * kSecond;
const kStay = 8 * kSecond;             // an ended lane is still there to be read

export class Feed {
    now = $state.raw(null);
    lanes = $state.raw([]);
    seconds = $state.raw([]);
    steps = $state.raw([]);
    fault = $state("");
    #kept = new Map();
    #words = new Map();   // when each request wrote a token
    #stopped = false;
    #line = new AbortController();

    constructor() {
        document.addEventListener("visibilitychange", this.#look);
        this.#listen();
    }

    stop() {
        this.#stopped = true;
        this.#line.abort();
        document.removeEventListener("visibilitychange", this.#look);
    }

    // Nobody sees a tab in the background, so the server need not tell it anything.
    #look = () => document.hidden && this.#line.abort();

    async #listen() {
        while (!this.#stopped) {
            if (document.hidden) {
                await new Promise((seen) => document.addEventListener("visibilitychange", seen, { once: true }));
                continue;
            }
            this.#line = new AbortController();
            const { signal } = this.#line;
            try {
                const reply = await call("/cadans/v1/now/stream", { signal });
                this.fault = "";
                this.#kept.clear();
                this.#words.clear();
                this.seconds = this.steps = [];
                for await (const { event, data } of events(reply)) {
                    if (event === "now") this.#take(JSON.parse(data));
                    else if (event === "steps") this.#takeSteps(JSON.parse(data).steps);
                }
            } catch (fault) {
                if (!signal.aborted) this.fault = fault.message;
            }
            if (!signal.aborted) await new Promise((later) => setTimeout(later, 1500));
        }
    }

    #take(now) {
        for (const request of now.requests) this.#extend(request, now.at_ns);
        for (const [id, lane] of this.#kept) {
            if (lane.end === null || now.at_ns - lane.end <= kStay) continue;
            this.#kept.delete(id);
            this.#words.delete(id);
        }
        this.lanes = [...this.#kept.values()];
        // A second is told again when a step that reached over it has ended.
        const told = now.seconds[0]?.at_ns ?? Infinity;
        this.seconds = [...this.seconds.filter((second) => second.at_ns < told), ...now.seconds].slice(-60);
        this.steps = this.steps.filter((step) => step.end_ns > now.at_ns - kStepWindow);
        this.now = now;
    }

    // A column is what was spent since the frame before; the first one is all that came before we looked.
    #extend(request, at) {
        const before = this.#kept.get(request.id);
        if (before?.end != null) return;
        const end = request.ended ? Math.min(at, request.accepted_ns + request.elapsed_ns) : null;
        const until = end ?? at;
        const from = before?.until ?? request.accepted_ns;
        const spent = byPhase(request.spent_ns);
        const columns = (before?.columns ?? []).filter((column) => column.until > at - kWindow);
        const change = difference(spent, before?.spent);
        // A step that runs is told of when it ends; until then the column waits, and is then as wide as it all was.
        const told = until > from && Object.values(change).some((ns) => ns > 0);
        if (told) columns.push({ from, until, spent: change });
        const words = (this.#words.get(request.id) ?? []).filter((ns) => ns > at - kWindow);
        this.#words.set(request.id, words);
        this.#kept.set(request.id, { request, columns, words, end, spent: told ? spent : before?.spent, until: told ? until : from });
    }

    #takeSteps(steps) {
        this.steps = [...this.steps, ...steps];
        for (const step of steps)
            for (const { id, phase } of step.shares)
                if (phase !== "prefill") this.#words.set(id, [...(this.#words.get(id) ?? []), step.end_ns]);
    }
}

function difference(spent, before) {
    if (before === undefined) return spent;
    return Object.fromEntries(Object.entries(spent).map(([phase, ns]) => [phase, Math.max(0, ns - before[phase])]));
}
