// Holds conversations with tools through the official OpenAI and Ollama clients; prints what they saw as one JSON document.
//   node tools_client.mjs http://127.0.0.1:11435 '[{"type": "function", …}]'
import { Ollama } from "ollama";
import OpenAI from "openai";

const [url, given] = process.argv.slice(2);
const tools = JSON.parse(given);
const openai = new OpenAI({ baseURL: url + "/v1", apiKey: "none", maxRetries: 0 });
const model = (await openai.models.list()).data[0].id;
const seen = { turns: [], ollama: [] };

const shown = (message) => (message.tool_calls ?? []).map((call) => ({ name: call.function.name, arguments: call.function.arguments }));
for (let seed = 0; seed < 4; seed++) {
    const messages = [{ role: "user", content: "How is the weather, and put the light on" }];
    for (let turn = 0; turn < 2; turn++) {
        const body = { model, messages, tools, tool_choice: "required", max_tokens: 400, seed: seed * 10 + turn };
        const whole = (await openai.chat.completions.create(body)).choices[0];
        let streamed = null;
        try {
            // The client's own helper joins the deltas by their index.
            streamed = (await openai.chat.completions.stream(body).finalChatCompletion()).choices[0];
        } catch (error) {
            if (error.constructor.name !== "LengthFinishReasonError") throw error;
        }
        seen.turns.push({ finish: whole.finish_reason, calls: shown(whole.message), streamed: streamed && shown(streamed.message) });
        if (whole.finish_reason !== "tool_calls") break;
        messages.push(whole.message);
        for (const call of whole.message.tool_calls) messages.push({ role: "tool", tool_call_id: call.id, content: "fine" });
    }
}

const ollama = new Ollama({ host: url });
const messages = [
    { role: "user", content: "now" },
    { role: "assistant", content: "", tool_calls: [{ function: { name: tools[0].function.name, arguments: {} } }] },
    { role: "tool", content: "noon", tool_name: tools[0].function.name },
];
for (let seed = 0; seed < 4; seed++) {
    // That it must call is no word of Ollama's; its client hands on what it is given.
    const body = { model, messages, tools, tool_choice: "required", options: { seed, temperature: 1, num_predict: 300 } };
    const whole = (await ollama.chat(body)).message;
    const parts = [];
    for await (const part of await ollama.chat({ ...body, stream: true })) parts.push(part.message);
    seen.ollama.push({ whole: shown(whole), streamed: parts.flatMap(shown), text: whole.content, pieces: parts.map((part) => part.content).join("") });
}
console.log(JSON.stringify(seen));
