// Server-sent events out of the body of a fetch: EventSource can send neither a body nor a key.

/** Yields {event, data} as they come; data is text. */
export async function* events(reply) {
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    try {
        for (;;) {
            const { value, done } = await reader.read();
            if (done) return;
            rest += value;
            for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
                const block = parsed(rest.slice(0, end));
                if (block.data !== undefined) yield block;
            }
        }
    } finally {
        reader.cancel().catch(() => {});
    }
}

function parsed(block) {
    let event = "message";
    let data;
    for (const line of block.split("\n")) {
        if (line.startsWith("event:")) event = line.slice(6).trim();
        else if (line.startsWith("data:")) data = (data === undefined ? "" : data + "\n") + line.slice(5).replace(/^ /, "");
    }
    return { event, data };
}
