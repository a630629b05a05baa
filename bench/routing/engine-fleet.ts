/** The engines that a gateway is measured with. */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { modelFolder, ROOT, workFolder } from "../lab/paths.ts";
import { type Cores, type Running, start, untilTrue } from "../lab/processes.ts";

/** What the simulated engines count themselves. */
export interface EngineCounts {
  readonly received: number;
  readonly finished: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly preemptions: number;
  /** Requests that are open now. */
  readonly open: number;
}

/** Where an engine listens. */
export interface EnginePorts {
  readonly port: number;
  readonly statsPort: number;
}

export interface EngineFleet extends Running {
  readonly urls: readonly string[];
  /** One for each engine, in the order of `urls`. */
  counts(): Promise<EngineCounts[]>;
}

export const MODEL = "mock-model";
/** Answers are the prompt's own tokens, so that the engines need no tokenizer. */
const FLAGS = `--dialect vllm --served-model-name ${MODEL} --output echo --shutdown-grace-period-secs 0`;

/** Starts `count` engines in one process and waits until they listen. `flags`: further ones of `collie engine`. */
export async function startEngines(count: number, flags: readonly string[], core: Cores = 1): Promise<EngineFleet> {
  const ready = join(workFolder(), `routing-engines-${process.pid}.json`);
  rmSync(ready, { force: true });
  const command = [
    ...[process.execPath, "run", join(ROOT, "bench", "routing", "engines.ts"), String(count), ready],
    ...[...FLAGS.split(" "), "--model-path", modelFolder(), ...flags],
  ];
  const running = start("routing-engines", command, core, { XDG_CACHE_HOME: workFolder() });
  await untilTrue(running, "the engines' start", async () => existsSync(ready));
  const ports = JSON.parse(readFileSync(ready, "utf8")) as EnginePorts[];
  rmSync(ready);
  return {
    ...running,
    urls: ports.map(({ port }) => `grpc://127.0.0.1:${port}`),
    counts: () => Promise.all(ports.map(({ statsPort }) => countsOf(statsPort))),
  };
}

async function countsOf(port: number): Promise<EngineCounts> {
  const response = await fetch(`http://127.0.0.1:${port}/stats`, { signal: AbortSignal.timeout(5000) });
  const stats = (await response.json()) as EngineCounts & { readonly engine: { readonly preemptions: number } };
  const { received, finished, promptTokens, cachedTokens, open, engine } = stats;
  return { received, finished, promptTokens, cachedTokens, open, preemptions: engine.preemptions };
}

/** What the engines did between two readings, together and each. */
export interface FleetWork {
  readonly requests: number;
  readonly promptTokens: number;
  /** Share of the prompts' tokens that caches held; 0 to 1. */
  readonly hitRate: number;
  /** Greatest ÷ mean of the engines: of prompt tokens, of those that were computed, of requests. */
  readonly tokenSpread: number;
  readonly computedSpread: number;
  readonly requestSpread: number;
  readonly preemptions: number;
  readonly requestsByEngine: readonly number[];
}

export function workBetween(before: readonly EngineCounts[], after: readonly EngineCounts[]): FleetWork {
  const each = (read: (counts: EngineCounts) => number) => after.map((counts, i) => read(counts) - read(before[i]!));
  const requests = each((c) => c.received);
  const tokens = each((c) => c.promptTokens);
  const computed = each((c) => c.promptTokens - c.cachedTokens);
  return {
    requests: sum(requests),
    promptTokens: sum(tokens),
    hitRate: 1 - sum(computed) / sum(tokens),
    tokenSpread: maxOverMean(tokens),
    computedSpread: maxOverMean(computed),
    requestSpread: maxOverMean(requests),
    preemptions: sum(each((c) => c.preemptions)),
    requestsByEngine: requests,
  };
}

export const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** 1 where all are equal. */
export function maxOverMean(values: readonly number[]): number {
  return (Math.max(...values) * values.length) / sum(values);
}
