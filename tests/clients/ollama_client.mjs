// Drives a server through the official Ollama client and prints what it saw as one JSON document.
//   node ollama_client.mjs http://127.0.0.1:11435
import { Ollama } from "ollama";

const client = new Ollama({ host: process.argv[2] });
const messages = [{ role: "user", content: "The river" }];
const options = { temperature: 0, num_predict: 6 };
const seen = {};

seen.list = (await client.list()).models.map((m) => m.name);
const model = seen.list[0];
seen.version = (await client.version()).version;
const shown = await client.show({ model });
seen.show = { family: shown.details.family, keys: Object.keys(shown.model_info ?? {}).length, template: typeof shown.template };
seen.ps = (await client.ps()).models.map((m) => m.name);

const whole = await client.chat({ model, messages, options });
seen.chat = whole;
const parts = [];
for await (const part of await client.chat({ model, messages, options, stream: true })) parts.push(part);
seen.stream = { text: parts.map((p) => p.message.content).join(""), done: parts.map((p) => p.done), last: parts.at(-1) };

seen.generate = await client.generate({ model, prompt: "The river", options });
const pieces = [];
for await (const part of await client.generate({ model, prompt: "The river", options, stream: true })) pieces.push(part);
seen.generate_stream = pieces.map((p) => p.response).join("");

try {
    await client.chat({ model: "no-such-model", messages });
} catch (error) {
    seen.missing = { status: error.status_code, message: error.message };
}
console.log(JSON.stringify(seen));
