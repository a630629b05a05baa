import { readFile } from "node:fs/promises";
import { demoModelFiles } from "../tokenizer/demo-model.ts";
import { loadTokenizer, openTokenizer } from "../tokenizer/load.ts";
import { EngineDriver } from "./core/driver.ts";
import { EngineCore } from "./core/engine-core.ts";
import { defaultCoreOptions } from "./core/options.ts";
import type { Dialect } from "./dialects/dialect.ts";
import { createKvPublisher } from "./dialects/kv-publisher.ts";
import { vllm } from "./dialects/vllm.ts";
import { healthMethods } from "./grpc/health.ts";
import { reflectionMethods } from "./grpc/reflection.ts";
import { type GrpcMethod, type GrpcServer, serveGrpc } from "./grpc/server.ts";
import type { SimulatorHost } from "./host.ts";
import { describeModel, readModelFolder, type SimulatedModel } from "./model/simulated-model.ts";
import { parseSpeed, type SimulatorOptions } from "./options.ts";
import { createAnswerer } from "./output/answer.ts";
import { parseScript, ScriptError } from "./script/load.ts";
import type { ScriptRule } from "./script/rule.ts";
import { emptyCounts, RequestLog, type RequestRecord, type StatsReport } from "./stats.ts";
import { type StatsServer, serveStats } from "./stats-server.ts";

/** A running simulated engine. */
export interface Simulator {
  readonly port: number;
  readonly statsPort: number;
  /** What `/stats` shows. */
  stats(): StatsReport;
  /** The last requests, oldest first, as `/requests` shows them. */
  requests(): readonly RequestRecord[];
  /** A dead engine goes on listening: HealthCheck says unhealthy, generation fails. */
  setAlive(alive: boolean): void;
  /** Refuses new calls, lets the running ones finish within the grace period, closes. Safe to call twice. */
  stop(): Promise<void>;
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
const DEFAULT_ECHO_TOKENS = 128;
const DEMO_MODEL = "collie-demo";

const DIALECTS: Readonly<Record<SimulatorOptions["dialect"], Dialect>> = { vllm };

/**
 * Starts a simulated engine. Rejects when the port is taken, the model or the script can't be read (ScriptError names the key),
 * the tokenizer is not supported, or settings don't fit together (SimulatorSettingError).
 */
export async function startSimulator(options: SimulatorOptions, hooks: SimulatorHooks = {}): Promise<Simulator> {
  if (options.kvTokens < MIN_BLOCKS * options.blockSize)
    throw new SimulatorSettingError(`kv-tokens: must be at least ${MIN_BLOCKS} blocks of ${options.blockSize} tokens`);
  const rules = options.script === undefined ? [] : await readScript(options.script);
  const echoOnly = options.output === "echo" && rules.length === 0;
  const model = await loadModel(options, !echoOnly, hooks.tokenizerCacheDir);
  const answer = model.tokenizer ? createAnswerer(model.tokenizer, options.outputTokens) : undefined;
  const core = new EngineCore({
    ...defaultCoreOptions,
    prefillTokensPerSecond: options.prefillTps,
    decodeBaseMs: options.decodeBaseMs,
    decodePerRequestMs: options.decodePerReqMs,
    prefillChunk: options.prefillChunk,
    kvTokens: options.kvTokens,
    blockSize: options.blockSize,
    maxRunning: options.maxRunning,
    prefixCaching: !options.noPrefixCache,
  });
  const driver = new EngineDriver(core, parseSpeed(options.speed));
  const counts = emptyCounts();
  const log = new RequestLog(LOGGED_REQUESTS);
  let server: GrpcServer | undefined;
  const host: SimulatorHost = {
    model,
    driver,
    counts,
    log,
    open: new Map(),
    rules,
    ruleUses: new Map(),
    echo: options.output === "echo",
    echoTokens: options.outputTokens ?? DEFAULT_ECHO_TOKENS,
    tokensPerMessage: options.tokensPerMessage,
    mergeLagging: options.mergeLagging,
    kvPublisher: options.noKvEvents ? undefined : createKvPublisher(driver),
    alive: true,
    startedAt: performance.now(),
    answer(promptTokens, cachedTokens, variant) {
      if (!answer) throw new Error("the simulated engine has no tokenizer to answer with");
      return answer(promptTokens, cachedTokens, variant);
    },
    connections: () => server?.connections ?? [],
    exit: hooks.exit ?? ((code) => process.exit(code)),
  };
  const dialect = DIALECTS[options.dialect];
  let stopping: Promise<void> | undefined;
  const methods = engineMethods(dialect, host, () => stopping === undefined && host.alive);
  server = serveGrpc({ host: options.host, port: options.port, methods });
  const { port, connections } = server;
  const report = (): StatsReport => ({
    dialect: dialect.name,
    alive: host.alive,
    uptimeSeconds: (performance.now() - host.startedAt) / 1000,
    connections: connections.size,
    open: [...host.open.values()].reduce((sum, twins) => sum + twins.size, 0),
    ...counts,
    engine: core.load(),
  });
  let stats: StatsServer;
  try {
    stats = serveStats(options.statsPort, {
      report,
      requests: () => log.list(),
      setAlive: (alive) => {
        host.alive = alive;
      },
    });
  } catch (error) {
    await server.stop(0);
    throw error;
  }
  const simulator: Simulator = {
    port,
    statsPort: stats.port,
    stats: report,
    requests: () => log.list(),
    setAlive(alive) {
      host.alive = alive;
    },
    stop() {
      stopping ??= (async () => {
        host.kvPublisher?.stop();
        await server.stop(options.shutdownGracePeriodSecs * 1000);
        driver.stop();
        await stats.stop();
      })();
      return stopping;
    },
  };
  hooks.onReady?.(simulator);
  return simulator;
}

function engineMethods(dialect: Dialect, host: SimulatorHost, serving: () => boolean): Map<string, GrpcMethod> {
  const methods = new Map<string, GrpcMethod>();
  for (const [name, method] of Object.entries(dialect.methods(host))) {
    host.counts.calls[name] = 0;
    methods.set(`/${dialect.service}/${name}`, (call, message) => {
      host.counts.calls[name]!++;
      method(call, message);
    });
  }
  const services = ["grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection", dialect.service];
  for (const [path, method] of healthMethods([dialect.service], serving)) methods.set(path, method);
  for (const [path, method] of reflectionMethods(services)) methods.set(path, method);
  return methods;
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
