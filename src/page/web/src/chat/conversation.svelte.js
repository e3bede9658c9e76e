// The conversation in this tab: what was said, and the answer that is on its way.
import { call, get } from "../lib/api.js";
import { events } from "../lib/sse.js";
import { say } from "../words/words.svelte.js";

const kShowEvery = 120;   // ms: words are drawn this often, since the machine that draws may be the one that writes

class Answer {
    role = "assistant";
    content = $state("");
    thinking = $state("");
    progress = $state(null);   // {phase, computed, total, cached, seconds_left, queue_place} until the first word
    figures = $state(null);    // the `cadans` object, once it has ended
    fault = $state("");
    ended = $state("");        // "", "whole", "length", "stopped", "failed"
    id = "";
    #heard = "";
    #later = 0;

    /** More of the answer; the first word is shown at once. */
    hear(text) {
        this.#heard += text;
        if (this.content === "") this.show();
        else if (this.#later === 0) this.#later = setTimeout(() => this.show(), kShowEvery);
    }

    /** Shows all that was heard. */
    show() {
        clearTimeout(this.#later);
        this.#later = 0;
        this.content += this.#heard;
        this.#heard = "";
    }
}

export const chat = $state({ messages: [], running: null, model: "", system: "", temperature: 0.7 });

let line = null;   // aborting it closes the connection, and the server then cancels the request

/** Says `text` and follows the answer to its end. */
export async function send(text) {
    chat.messages.push({ role: "user", content: text });
    chat.messages.push(new Answer());
    const answer = chat.messages.at(-1);
    chat.running = answer;
    line = new AbortController();
    try {
        await follow(answer, line.signal);
    } catch (fault) {
        if (line.signal.aborted) answer.ended = "stopped";
        else {
            answer.ended = "failed";
            answer.fault = fault instanceof TypeError ? say("chat.broken") : fault.message;   // a TypeError: the line broke
        }
    }
    answer.show();
    answer.progress = null;
    chat.running = null;
    if (answer.ended === "stopped") await fetchFigures(answer);
}

/** Really stops: the line is closed, the server ends the request and counts it as cancelled. */
export const stop = () => line?.abort();

export function startOver() {
    stop();
    chat.messages = [];
}

async function follow(answer, signal) {
    const reply = await call("/v1/chat/completions", { body: requestBody(), signal });
    answer.id = reply.headers.get("x-request-id") ?? "";
    for await (const { data } of events(reply)) {
        if (data === "[DONE]") break;
        const frame = JSON.parse(data);
        if (frame.error) throw new Error(frame.error.message);
        take(answer, frame);
    }
    if (answer.ended === "" && !signal.aborted) throw new Error(say("chat.broken"));
}

function take(answer, frame) {
    if (frame.id) answer.id = frame.id;
    if (frame.cadans?.progress) answer.progress = frame.cadans.progress;
    else if (frame.cadans) answer.figures = frame.cadans;
    const choice = frame.choices?.[0];
    if (choice === undefined) return;
    if (choice.delta.content) answer.hear(choice.delta.content);
    if (choice.delta.reasoning_content) answer.thinking += choice.delta.reasoning_content;
    if (answer.content || answer.thinking) answer.progress = null;
    if (choice.finish_reason) answer.ended = choice.finish_reason === "length" ? "length" : "whole";
}

function requestBody() {
    const messages = [];
    for (let i = 0; i < chat.messages.length; i += 2) {   // a question, then its answer
        const [question, answer] = chat.messages.slice(i, i + 2);
        if (answer.content === "" && answer !== chat.running) continue;   // it came to nothing, so it was never asked
        messages.push({ role: "user", content: question.content });
        if (answer !== chat.running) messages.push({ role: "assistant", content: answer.content });
    }
    if (chat.system.trim() !== "") messages.unshift({ role: "system", content: chat.system });
    return {
        model: chat.model || undefined,
        messages,
        temperature: chat.temperature,
        stream: true,
        stream_options: { include_progress: true },
    };
}

// The server hears of a closed line a moment later than we do.
async function fetchFigures(answer) {
    for (let tries = 0; tries < 20 && answer.id !== ""; ++tries) {
        try {
            answer.figures = await get(`/cadans/v1/requests/${encodeURIComponent(answer.id)}`);
            return;
        } catch {
            await new Promise((later) => setTimeout(later, 150));
        }
    }
}
