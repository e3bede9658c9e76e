// Lanes and steps, painted on a canvas: four times a second, twenty seconds wide.
import { colour } from "../lib/theme.svelte.js";

// From the bottom: what the request had for itself, then what it waited for.
const kStack = ["write", "read", "load", "queue", "other", "held"];

/** Fits the canvas to its place on the screen: {context, width, height} in CSS pixels. */
export function prepare(canvas) {
    const scale = devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
        canvas.width = Math.round(width * scale);
        canvas.height = Math.round(height * scale);
    }
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    return { context, width, height };
}

/** The look of each kind of time; held up is striped, so that it is told apart without colour. */
export function brushes(context) {
    const brush = Object.fromEntries(kStack.map((phase) => [phase, colour(`--${phase}`)]));
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const paint = tile.getContext("2d");
    paint.fillStyle = brush.held;
    paint.fillRect(0, 0, 6, 6);
    paint.strokeStyle = colour("--stripe");
    paint.lineWidth = 2;
    for (const shift of [-6, 0, 6]) {
        paint.beginPath();
        paint.moveTo(shift - 1, 7);
        paint.lineTo(shift + 7, -1);
        paint.stroke();
    }
    brush.held = context.createPattern(tile, "repeat");
    return brush;
}

const kTick = 6;   // pixels above the columns

/** One request, the newest at the right: a tick for each token it wrote, above columns of where its time went. */
export function paintLane(canvas, { columns, words }, at, window) {
    const { context, width, height } = prepare(canvas);
    const brush = brushes(context);
    const place = (ns) => width - ((at - ns) / window) * width;
    for (const column of columns) {
        const left = Math.max(0, place(column.from));
        const right = place(column.until);
        if (right <= 0) continue;
        const total = Object.values(column.spent).reduce((a, b) => a + b, 0) || 1;
        const gap = right - left > 3 ? 1 : 0;
        let bottom = height;
        for (const phase of kStack) {
            const tall = (column.spent[phase] / total) * (height - kTick - 2);
            if (tall <= 0) continue;
            context.fillStyle = brush[phase];
            context.fillRect(left, bottom - tall, Math.max(0.5, right - left - gap), tall);
            bottom -= tall;
        }
    }
    context.fillStyle = colour("--accent");
    for (const ns of words) context.fillRect(place(ns) - 1.5, 0, 1.5, kTick);
}

/** Steps of the machine: as wide as they took, split by whose rows were in them. */
export function paintSteps(canvas, steps, at, window) {
    const { context, width, height } = prepare(canvas);
    const brush = brushes(context);
    const place = (ns) => width - ((at - ns) / window) * width;
    for (const step of steps) {
        const left = place(step.begin_ns);
        const wide = Math.max(1, place(step.end_ns) - left - 1);
        const { prefill = 0, decode = 0, verify = 0 } = step.rows;
        const writes = decode + verify;
        const parts = [["write", writes > 0 ? 1 : 0], ["read", prefill > 0 ? 1 : 0]].filter(([, share]) => share > 0);
        let bottom = height;
        for (const [phase] of parts) {
            const tall = height / parts.length;
            context.fillStyle = brush[phase];
            context.fillRect(left, bottom - tall, wide, tall);
            bottom -= tall;
        }
    }
}
