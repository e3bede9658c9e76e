// Times the peer engine once: tokens a second of reading a prompt, or of writing, behind `depth` tokens.
//   node bench.mjs '{"model": FILE, "threads": N, "kind": "prefill" | "decode", "tokens": N, "depth": N, "streams": N}'
// The last line it prints is JSON: {"tokens_per_second": x, ...}. One round before the timed one warms everything up.
import { getLlama } from "node-llama-cpp";

const job = JSON.parse(process.argv[2]);
const llama = await getLlama({ build: "never", gpu: false, logLevel: "error", skipDownload: true, maxThreads: job.threads });
const model = await llama.loadModel({ modelPath: job.model });
const room = Math.ceil((job.depth + job.tokens + 64) / 256) * 256;
const context = await model.createContext({ contextSize: room, sequences: job.streams, threads: job.threads, batchSize: 512,
    flashAttention: true });
let state = 12345;
const dice = () => (state = (state * 1103515245 + 12345) & 0x7fffffff) % 400 + 1000;
const tokens = count => Array.from({ length: count }, dice);

async function write(sequence, count) {
    let written = 0;
    for await (const _ of sequence.evaluate(tokens(1), { temperature: 0, yieldEogToken: true }))
        if (++written === count) break;
    if (written < count) throw new Error(`only ${written} of ${count} tokens came`);
}

async function once(sequences, count) {
    for (const sequence of sequences) {
        await sequence.clearHistory();
        if (job.depth > 0) await sequence.evaluateWithoutGeneratingNewTokens(tokens(job.depth));
    }
    const read = tokens(count);
    const begin = performance.now();
    if (job.kind === "prefill") await sequences[0].evaluateWithoutGeneratingNewTokens(read);
    else await Promise.all(sequences.map(sequence => write(sequence, count)));
    return (performance.now() - begin) / 1000;
}

const sequences = Array.from({ length: job.streams }, () => context.getSequence());
await once(sequences, Math.min(job.tokens, 8));
const seconds = await once(sequences, job.tokens);
console.log(JSON.stringify({ tokens_per_second: job.tokens * job.streams / seconds, seconds, ...job, flash_attention: context.flashAttention,
    build: llama.buildType, llama_cpp: llama.llamaCppRelease }));
process.exit(0);
