import { readFile } from "node:fs/promises";
import { demoModelFiles } from "../tokenizer/demo-model.ts";
import { loadTokenizer, openTokenizer } from "../tokenizer/load.ts";
import { EngineProcess } from "./engine-process.ts";
import { cacheContents, type RankContents } from "./kv/contents.ts";
import type { KvPorts } from "./kv/zmq-publisher.ts";
import { describeModel, readModelFolder, type SimulatedModel } from "./model/simulated-model.ts";
import type { SimulatorOptions } from "./options.ts";
import { createAnswerer } from "./output/answer.ts";
import { RuleBook } from "./script/book.ts";
import { parseLiveFault, parseScript, ScriptError } from "./script/load.ts";
import type { ScriptRule } from "./script/rule.ts";
import { emptyCounts, RequestLog, type RequestRecord, type StatsReport } from "./stats.ts";
import { serveStats } from "./stats-server.ts";

/** A running simulated engine. */
export interface Simulator {
  readonly port: number;
  readonly statsPort: number;
  /** Where KV events are published over ZeroMQ. */
  readonly kvPorts: KvPorts | undefined;
  /** Where other engines of a pair fetch KV. */
  readonly bootstrapPort: number | undefined;
  /** What `/stats` shows. */
  stats(): StatsReport;
  /** The last requests, oldest first, as `/requests` shows them. */
  requests(): readonly RequestRecord[];
  /** What the prefix caches of all ranks hold now. */
  blocks(): RankContents[];
  /** How many tokens of a prompt a rank has cached: whole blocks, and never its last token. Throws RangeError without such a rank. */
  match(tokenIds: Uint32Array, rank?: number): number;
  /** A dead engine goes on listening: HealthCheck says unhealthy, generation fails. */
  setAlive(alive: boolean): void;
  /** Sets a fault for later prompts: a rule of a script without an answer, as parsed JSON. Throws ScriptError. */
  setFault(fault: unknown): void;
  clearFaults(): void;
  /** The process stands still for so many milliseconds (Infinity: until told otherwise, by 0): nothing is read, answered or sent. */
  freeze(ms: number): void;
  /**
   * Kills the engine and starts it anew on the same port after `downMs`: connections break, memory is empty. Counts, the log of
   * requests and the faults stay. Resolves when it listens again.
   */
  restart(change?: RestartChange): Promise<void>;
  /** Refuses new calls, lets the running ones finish within the grace period, closes. Safe to call twice. */
  stop(): Promise<void>;
}

/** What is different after a restart. */
export interface RestartChange {
  readonly blockSize?: number;
  readonly downMs?: number;
}

export interface SimulatorHooks {
  /** The engine listens. */
  readonly onReady?: (simulator: Simulator) => void;
  /** Ends the process for a scripted `exit`; `process.exit` unless given. */
  readonly exit?: (code: number) => void;
  /** Folder for built tokenizer tables; without it they are built at every start. */
  readonly tokenizerCacheDir?: string;
}

/** Settings that do not fit together; the message names the flag. */
export class SimulatorSettingError extends Error {
  override readonly name = "SimulatorSettingError";
}

const MIN_BLOCKS = 2;
/** Requests kept for `/requests`. */
const LOGGED_REQUESTS = 256;
const DEMO_MODEL = "collie-demo";

/**
 * Starts a simulated engine. Rejects when the port is taken, the model or the script can't be read (ScriptError names the key),
 * the tokenizer is not supported, or settings don't fit together (SimulatorSettingError).
 */
export async function startSimulator(options: SimulatorOptions, hooks: SimulatorHooks = {}): Promise<Simulator> {
  return startEngine(options, await loadParts(options, hooks), hooks);
}

/**
 * Starts `options.instances` engines in this process, on consecutive ports where those are given: engines of their own, that share
 * only what they read of the model and the script. Rejects as `startSimulator` does, with none left running.
 */
export async function startSimulators(options: SimulatorOptions, hooks: SimulatorHooks = {}): Promise<Simulator[]> {
  const parts = await loadParts(options, hooks);
  const started: Simulator[] = [];
  try {
    for (let i = 0; i < options.instances; i++)
      started.push(await startEngine(instanceOptions(options, i), parts, hooks));
  } catch (error) {
    await Promise.all(started.map((simulator) => simulator.stop()));
    throw error;
  }
  return started;
}

/** Settings of one of several engines: each rank's ports follow those of the engine before. */
function instanceOptions(options: SimulatorOptions, index: number): SimulatorOptions {
  const shifted = (port: number, step = 1) => (port === 0 ? 0 : port + index * step);
  const { kvEventsZmq, kvEventsReplay, engineId, dataParallelSize } = options;
  return {
    ...options,
    port: shifted(options.port),
    statsPort: shifted(options.statsPort),
    bootstrapPort: shifted(options.bootstrapPort),
    kvEventsZmq: kvEventsZmq === undefined ? undefined : shifted(kvEventsZmq, dataParallelSize),
    kvEventsReplay: kvEventsReplay === undefined ? undefined : shifted(kvEventsReplay, dataParallelSize),
    engineId: engineId === undefined || index === 0 ? engineId : `${engineId}-${index}`,
  };
}

/** What several engines may share. */
interface Parts {
  readonly scripted: readonly ScriptRule[];
  readonly model: SimulatedModel;
}

async function loadParts(options: SimulatorOptions, hooks: SimulatorHooks): Promise<Parts> {
  if (options.kvTokens < MIN_BLOCKS * options.blockSize)
    throw new SimulatorSettingError(`kv-tokens: must be at least ${MIN_BLOCKS} blocks of ${options.blockSize} tokens`);
  const problem = roleProblem(options);
  if (problem !== undefined) throw new SimulatorSettingError(problem);
  const scripted = options.script === undefined ? [] : await readScript(options.script);
  const echoOnly = options.output === "echo" && scripted.length === 0 && options.dialect !== "openai";
  return { scripted, model: await loadModel(options, !echoOnly, hooks.tokenizerCacheDir) };
}

async function startEngine(
  options: SimulatorOptions,
  { scripted, model }: Parts,
  hooks: SimulatorHooks,
): Promise<Simulator> {
  const answer = model.tokenizer ? createAnswerer(model.tokenizer, options.outputTokens) : undefined;
  const rules = new RuleBook(scripted);
  const counts = emptyCounts();
  const log = new RequestLog(LOGGED_REQUESTS);
  const shared = {
    model,
    counts,
    log,
    rules,
    answer(promptTokens: number, cachedTokens: number, variant: number) {
      if (!answer) throw new Error("the simulated engine has no tokenizer to answer with");
      return answer(promptTokens, cachedTokens, variant);
    },
    exit: hooks.exit ?? ((code: number) => process.exit(code)),
  };
  let current = options;
  let engine = new EngineProcess(current, shared);
  const { port, kvPorts, host } = engine;
  const bootstrapPort = host.pairing?.depot?.port;
  // A restart is on the same ports.
  current = {
    ...current,
    port,
    // And the same engine to its peers.
    ...(host.pairing && { engineId: host.pairing.engineId }),
    ...(bootstrapPort !== undefined && { bootstrapPort }),
    ...(kvPorts && { kvEventsZmq: kvPorts.port }),
    ...(kvPorts?.replayPort !== undefined && { kvEventsReplay: kvPorts.replayPort }),
  };
  let stopping: Promise<void> | undefined;
  const simulator: Simulator = {
    port,
    kvPorts,
    bootstrapPort,
    get statsPort() {
      return stats.port;
    },
    stats: () => engine.report(),
    requests: () => log.list(),
    blocks: () => cacheContents(engine.host.ranks),
    match(tokenIds, rank = 0) {
      const { ranks } = engine.host;
      if (!(rank in ranks.drivers)) throw new RangeError(`rank: must be below ${ranks.size}`);
      return ranks.at(rank).core.cache.matchedTokens(tokenIds, tokenIds.length - 1);
    },
    setAlive(alive) {
      engine.host.alive = alive;
    },
    setFault(fault) {
      const rule = parseLiveFault(fault);
      if (rule.pattern !== undefined && !model.tokenizer)
        throw new ScriptError("fault: an engine that only echoes reads no prompts; leave out contains and matches");
      rules.add(rule);
      engine.feed.faultsChanged();
    },
    clearFaults: () => rules.clear(),
    freeze: (ms) => engine.freeze(ms),
    async restart({ blockSize, downMs = 0 } = {}) {
      engine.kill();
      current = { ...current, blockSize: blockSize ?? current.blockSize };
      if (downMs > 0) await Bun.sleep(downMs);
      if (stopping === undefined) engine = new EngineProcess(current, shared);
    },
    stop() {
      stopping ??= engine.stop(options.shutdownGracePeriodSecs * 1000).then(() => stats.stop());
      return stopping;
    },
  };
  let stats: ReturnType<typeof serveStats>;
  try {
    stats = serveStats(options.statsPort, simulator, () => rules.faults);
  } catch (error) {
    await engine.stop(0);
    throw error;
  }
  hooks.onReady?.(simulator);
  return simulator;
}

/** An engine that can't be what it shall be. */
function roleProblem({ dialect, flavor, role, kvConnector }: SimulatorOptions): string | undefined {
  const engine = dialect === "openai" ? flavor : dialect;
  if (kvConnector !== undefined && engine !== "vllm") return "kv-connector: only vLLM has connectors";
  if (role === "regular" || engine === "sglang" || engine === "tokenspeed") return undefined;
  if (engine !== "vllm") return `role: ${engine} has no pairs`;
  return kvConnector === undefined ? "role: vLLM needs kv-connector for it" : undefined;
}

async function readScript(path: string): Promise<ScriptRule[]> {
  try {
    return parseScript(await readFile(path, "utf8"));
  } catch (error) {
    throw new ScriptError(`script ${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function loadModel(
  options: SimulatorOptions,
  withTokenizer: boolean,
  cacheDir: string | undefined,
): Promise<SimulatedModel> {
  const { modelPath } = options;
  const files = modelPath === undefined ? await demoModelFiles() : await readModelFolder(modelPath);
  const handle = withTokenizer ? await loadTokenizer(files, cacheDir === undefined ? {} : { cacheDir }) : undefined;
  const tokenizer = handle ? openTokenizer(handle) : undefined;
  return describeModel(files, {
    path: modelPath ?? DEMO_MODEL,
    servedName: options.servedModelName,
    contextLength: options.contextLength,
    // A pooled prompt may fill the context, and the core makes one token of it.
    kvTokens: Math.floor(options.kvTokens / options.blockSize) * options.blockSize - (options.poolingDim ? 1 : 0),
    vocabSize: options.vocabSize,
    poolingDim: options.poolingDim,
    tokenizer,
  });
}
