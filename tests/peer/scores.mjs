// Scores token ids with the peer engine: log-probabilities of its best tokens and of the tokens asked for.
//   node scores.mjs JOB.json OUT.json        JOB: {"model": FILE, "context": N, "threads": N, "top": N,
//                                         "sequences": [{"ids": [...], "from": K, "wanted": [[...], ...]}]}
// Writes {"sequences": [[{"token": logprob, ...}, ...], ...]}: for position from, from + 1, ... the scores of the next token.
import { readFileSync, writeFileSync } from "node:fs";
import { getLlama } from "node-llama-cpp";

const job = JSON.parse(readFileSync(process.argv[2], "utf8"));
const llama = await getLlama({ build: "never", gpu: false, logLevel: "error", skipDownload: true });
const model = await llama.loadModel({ modelPath: job.model });
const sequences = [];
for (const { ids, from, wanted } of job.sequences) {
    const context = await model.createContext({ contextSize: job.context, threads: job.threads, batchSize: 512, sequences: 1 });
    const sequence = context.getSequence();
    const items = ids.map((token, at) => at < from ? token : [token, { generateNext: {
        totalLogitWeight: true,
        logits: { filter: { tokens: wanted?.[at - from] ?? [], includeMax: true, includeTop: job.top } } } }]);
    const results = (await sequence.controlledEvaluate(items)).slice(from);
    sequences.push(results.map(({ next }) => {
        const best = Math.max(...next.logits.values());
        const total = Math.log(next.totalLogitWeight);
        return Object.fromEntries([...next.logits].map(([token, logit]) => [token, logit - best - total]));
    }));
    await context.dispose();
}
writeFileSync(process.argv[3], JSON.stringify({ sequences }));
process.exit(0);
