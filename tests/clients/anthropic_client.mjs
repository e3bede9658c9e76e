// Holds conversations with tools through Anthropic's official client; prints what it saw as one JSON document.
//   node anthropic_client.mjs http://127.0.0.1:11435 '[{"name": …, "input_schema": …}]'
import Anthropic from "@anthropic-ai/sdk";

const [url, given] = process.argv.slice(2);
const tools = JSON.parse(given);
const client = new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });
const seen = { turns: [] };

const shown = (message) => ({
    stop: message.stop_reason,
    tokens: message.usage.output_tokens,
    text: message.content.filter((block) => block.type === "text").map((block) => block.text).join(""),
    calls: message.content.filter((block) => block.type === "tool_use").map((block) => ({ id: block.id, name: block.name, input: block.input })),
});

for (let seed = 0; seed < 6; seed++) {
    const messages = [{ role: "user", content: "How is the weather, and put the light on" }];
    for (let turn = 0; turn < 3; turn++) {
        const body = { model: "default", max_tokens: 400, system: "Be brief.", messages, tools, tool_choice: { type: turn < 2 ? "any" : "auto" }, seed: seed * 10 + turn };
        const whole = await client.messages.create(body);
        // The client's own helper joins the pieces of each block.
        const stream = client.messages.stream(body);
        const events = [];
        stream.on("streamEvent", (event) => events.push(event.type));
        const streamed = await stream.finalMessage();
        seen.turns.push({ turn, whole: shown(whole), streamed: shown(streamed), first: events[0], last: events.at(-1) });
        if (whole.stop_reason !== "tool_use") break;
        messages.push({ role: "assistant", content: whole.content });
        const results = whole.content.filter((block) => block.type === "tool_use").map((block) => ({ type: "tool_result", tool_use_id: block.id, content: [{ type: "text", text: "fine" }] }));
        messages.push({ role: "user", content: results });
    }
}

const messages = [{ role: "user", content: "Hello" }];
seen.few = (await client.messages.countTokens({ model: "default", messages })).input_tokens;
seen.many = (await client.messages.countTokens({ model: "default", messages, tools })).input_tokens;
const error = async (body) => {
    try {
        await client.messages.create({ model: "default", max_tokens: 3, ...body });
    } catch (caught) {
        return { kind: caught.constructor.name, status: caught.status, type: caught.error?.error?.type };
    }
};
seen.missing = await error({ model: "no-such-model", messages });
seen.bad = await error({ messages: [] });
console.log(JSON.stringify(seen));
