/** The compiled gateway in front of a real vLLM's gRPC server, compared with the HTTP server of the same vLLM. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Answer, ask, askStream } from "./answer.ts";
import type { EngineCase } from "./cases/row.ts";
import { engineCases } from "./cases.ts";
import { answerDifferences, expectationFaults } from "./compare.ts";
import { EMBEDDING_MODEL, embeddingChecks } from "./embedding-checks.ts";
import { gatewayChecks } from "./gateway-checks.ts";
import { httpWorkerChecks } from "./http-worker-checks.ts";
import type { CaseResult, EnginePart, RunOptions } from "./results.ts";
import { enginesFolder, startGateway, startVllm } from "./servers.ts";
import { toolChecks } from "./tool-checks.ts";

const CONTEXT = 4096;

type Model = "tiny" | "smollm2";

interface Both {
  readonly whole: Answer;
  readonly streamed: Answer;
}

async function askAll(url: string, cases: readonly EngineCase[]): Promise<Both[]> {
  const answers: Both[] = [];
  for (const { body } of cases) answers.push({ whole: await ask(url, body), streamed: await askStream(url, body) });
  return answers;
}

/** The HTTP server of this model is tried as a worker, too; with `--reuse` only if it has to be started. */
const HTTP_WORKER_MODEL = "smollm2";
const isHttpOnly = ({ only }: RunOptions): boolean => only?.startsWith("HTTP worker") === true;

interface Peer {
  readonly answers: readonly Both[];
  /** What was checked while the server ran. */
  readonly results: readonly CaseResult[];
}

/** vLLM's own answers, by name of the case; kept beside the engine for `--reuse`. */
async function peerAnswers(model: Model, cases: readonly EngineCase[], options: RunOptions): Promise<Peer> {
  const folder = join(enginesFolder, "run");
  const file = join(folder, `peer-answers-${model}.json`);
  const key = JSON.stringify(cases.map((c) => c.body));
  if (options.reuse && existsSync(file)) {
    const kept = JSON.parse(readFileSync(file, "utf8")) as { key: string; answers: Both[] };
    if (kept.key === key) return { answers: kept.answers, results: [] };
  }
  console.log(`starting vLLM's HTTP server with ${model} (a minute or more) ...`);
  const server = await startVllm("http", model, CONTEXT);
  try {
    const answers = await askAll(server.url, cases);
    if (answers.length > 0) {
      mkdirSync(folder, { recursive: true });
      writeFileSync(file, JSON.stringify({ key, answers }));
    }
    const wantsWorker = model === HTTP_WORKER_MODEL && (options.only === undefined || isHttpOnly(options));
    return { answers, results: wantsWorker ? await httpWorkerChecks(model, server.url) : [] };
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

async function runModel(model: Model, cases: readonly EngineCase[], options: RunOptions): Promise<CaseResult[]> {
  const needsPeer = cases.length > 0 || isHttpOnly(options);
  const { answers: theirs, results: before } = needsPeer
    ? await peerAnswers(model, cases, options)
    : { answers: [], results: [] };
  if (isHttpOnly(options)) return [...before];
  console.log(`starting vLLM's gRPC server with ${model} ...`);
  const engine = await startVllm("grpc", model, CONTEXT);
  try {
    const gateway = await startGateway(engine.url);
    try {
      const ours = await askAll(gateway.url, cases);
      const results = [...before, ...cases.map((test, i) => judge(test, theirs[i]!, ours[i]!))];
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

/** What there is to run, model after model. */
export function vllmParts(options: RunOptions): readonly EnginePart[] {
  const wanted = engineCases.filter((c) => options.only === undefined || c.name.includes(options.only));
  const parts: EnginePart[] = [];
  for (const model of ["tiny", "smollm2"] as const) {
    const cases = wanted.filter((c) => c.model === model);
    const isWanted = isHttpOnly(options) ? model === HTTP_WORKER_MODEL : options.only?.startsWith("tools");
    if (cases.length === 0 && isWanted !== true) continue;
    parts.push({ model, name: `${model}: all ${cases.length} cases`, run: () => runModel(model, cases, options) });
  }
  if (options.only === undefined || options.only.startsWith("MiniLM"))
    parts.push({ model: EMBEDDING_MODEL, name: "MiniLM: all cases", run: embeddingChecks });
  return parts;
}
