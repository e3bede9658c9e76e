// Renders chat templates with npm's @huggingface/jinja for template_differential.py: one JSON job a line in and out.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import path from "node:path";

const require = createRequire(path.join(path.resolve(process.argv[2]), "x.js"));
const { Template } = await import(pathToFileURL(require.resolve("@huggingface/jinja")).href);

process.env.TZ = "UTC";
const RealDate = Date;
for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  const names = { messages: job.messages, add_generation_prompt: job.add_generation_prompt, bos_token: job.bos_token,
                  eos_token: job.eos_token, ...job.variables };
  globalThis.Date = class extends RealDate {
    constructor() { super(job.now * 1000); }
  };
  if (job.tools !== null) names.tools = job.tools;
  let out;
  try {
    out = { text: new Template(job.template).render(names) };
  } catch (error) {
    out = { error: String(error) };
  }
  process.stdout.write(JSON.stringify(out) + "\n");
}
