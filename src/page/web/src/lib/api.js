// Calls of the server that sent this page. An answer that is none throws a Refusal with the server's own sentence.
import { say } from "../words/words.svelte.js";
import { key, askForKey } from "./key.svelte.js";

export class Refusal extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

/** A Response that is 2xx; the connection ends when `signal` is aborted. */
export async function call(path, { body, signal } = {}) {
    const headers = {};
    if (key.value) headers.Authorization = `Bearer ${key.value}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const reply = await fetch(path, {
        method: body === undefined ? "GET" : "POST",
        headers,
        body: body === undefined ? undefined : JSON.stringify(body),
        signal,
    }).catch((fault) => {
        throw signal?.aborted ? fault : new Refusal(0, say("unreachable"));
    });
    if (reply.ok) return reply;
    if (reply.status === 401) askForKey();
    throw new Refusal(reply.status, await sentenceOf(reply));
}

export async function get(path, signal) {
    return (await call(path, { signal })).json();
}

async function sentenceOf(reply) {
    try {
        const { error } = await reply.json();
        return typeof error === "string" ? error : error.message;
    } catch {
        return `${reply.status} ${reply.statusText}`;
    }
}
