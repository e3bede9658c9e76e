// Numbers for people, in the reader's language. A space that does not break keeps a number and its unit together.
import { language } from "../words/words.svelte.js";

const made = new Map();

// The reader's own kind of the language, such as en-GB, where the browser names one.
const locale = () => navigator.languages?.find((each) => each.slice(0, 2).toLowerCase() === language.code) ?? language.code;

function formatter(options, kind = Intl.NumberFormat) {
    const name = kind.name + locale() + JSON.stringify(options);
    if (!made.has(name)) made.set(name, new kind(locale(), options));
    return made.get(name);
}

export const count = (value) => formatter({ maximumFractionDigits: 0 }).format(value);
export const percent = (share) => formatter({ style: "percent", maximumFractionDigits: 0 }).format(share);

/** Three digits that mean something: 0.42, 6.91, 42.1, 845. */
export function figure(value) {
    const digits = value < 10 ? 2 : value < 100 ? 1 : 0;
    return formatter({ maximumFractionDigits: digits }).format(value);
}

export const rate = (perSecond) => formatter({ maximumFractionDigits: perSecond < 100 ? 1 : 0 }).format(perSecond);

/** A span of nanoseconds: 0.42 ms, 312 ms, 7.3 s, 42 s, 2 min 5 s, 3 h 12 min. */
export function span(ns) {
    const ms = ns / 1e6;
    if (ms < 1) return `${formatter({ maximumFractionDigits: 2 }).format(ms)}\u00a0ms`;
    if (ms < 10) return `${formatter({ maximumFractionDigits: 1 }).format(ms)}\u00a0ms`;
    if (ms < 999.5) return `${count(ms)}\u00a0ms`;
    const s = ms / 1e3;
    if (s < 9.95) return `${formatter({ minimumFractionDigits: 1, maximumFractionDigits: 1 }).format(s)}\u00a0s`;
    if (s < 59.5) return `${count(s)}\u00a0s`;
    const whole = Math.round(s);
    if (whole < 3600) return `${Math.floor(whole / 60)}\u00a0min ${whole % 60}\u00a0s`;
    return `${count(Math.floor(whole / 3600))}\u00a0h ${Math.floor((whole % 3600) / 60)}\u00a0min`;
}

/** The same, rounded up to what is worth saying of a wait: whole seconds, and never none. */
export function wait(seconds) {
    const whole = Math.max(1, Math.ceil(seconds));
    return whole < 60 ? `${count(whole)}\u00a0s` : span(whole * 1e9);
}

export function bytes(value) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    for (; value >= 1024 && unit < units.length - 1; ++unit) value /= 1024;
    return `${figure(value)}\u00a0${units[unit]}`;
}

export const moment = (unixMs) => formatter({ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }, Intl.DateTimeFormat).format(unixMs);
export const day = (unixMs) => formatter({ day: "numeric", month: "short" }, Intl.DateTimeFormat).format(unixMs);
export const clock = (unixMs) => formatter({ hour: "2-digit", minute: "2-digit" }, Intl.DateTimeFormat).format(unixMs);
