// Drives a server through the official OpenAI client and prints what it saw as one JSON document.
//   node openai_client.mjs http://127.0.0.1:11435
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2] + "/v1", apiKey: "none", maxRetries: 0 });
const messages = [{ role: "user", content: "The river" }];
const seen = {};

seen.models = (await client.models.list()).data.map((m) => m.id);
const model = seen.models[0];

const whole = await client.chat.completions.create({ model, messages, max_tokens: 6, temperature: 0 });
seen.chat = { text: whole.choices[0].message.content, role: whole.choices[0].message.role, finish: whole.choices[0].finish_reason, usage: whole.usage };

const frames = [];
for await (const frame of await client.chat.completions.create({
    model, messages, max_tokens: 6, temperature: 0, stream: true, stream_options: { include_usage: true } })) frames.push(frame);
seen.stream = {
    text: frames.map((f) => f.choices[0]?.delta?.content ?? "").join(""),
    finish: frames.map((f) => f.choices[0]?.finish_reason).filter(Boolean),
    usage: frames.at(-1).usage, usage_choices: frames.at(-1).choices.length,
};

// The client's own helper joins the frames; it is stricter about them than a loop is.
const helper = client.chat.completions.stream({ model, messages, max_tokens: 6, temperature: 0 });
seen.helper = (await helper.finalChatCompletion()).choices[0].message.content;

const text = await client.completions.create({ model, prompt: "The river", max_tokens: 6, temperature: 0, logprobs: 2 });
seen.completion = { text: text.choices[0].text, logprobs: text.choices[0].logprobs };

const scored = await client.chat.completions.create({ model, messages, max_tokens: 3, temperature: 0, logprobs: true, top_logprobs: 2 });
seen.logprobs = scored.choices[0].logprobs.content.map((t) => ({ token: t.token, logprob: t.logprob, bytes: t.bytes, top: t.top_logprobs.length }));

try {
    await client.chat.completions.create({ model: "no-such-model", messages });
} catch (error) {
    seen.missing = { status: error.status, code: error.code, kind: error.constructor.name };
}
try {
    await client.chat.completions.create({ model, messages: [{ role: "user", content: "é".repeat(100000) }] });
} catch (error) {
    seen.long = { status: error.status, code: error.code, kind: error.constructor.name };
}

// Leaving a stream early must leave the client and the server usable.
const cut = await client.chat.completions.create({ model, messages, max_tokens: 500, stream: true });
for await (const _ of cut) break;
cut.controller.abort();
seen.after_cut = (await client.chat.completions.create({ model, messages, max_tokens: 1 })).usage.completion_tokens;

console.log(JSON.stringify(seen));
