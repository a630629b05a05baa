import type { Environment } from "../config/given.ts";
import type { ServeConfig } from "../config/serve-options.ts";
import type { Logger } from "../telemetry/log.ts";
import { type Counted, MetricRegistry } from "../telemetry/registry.ts";
import type { FleetBoard } from "../threads/fleet-board.ts";
import type { PrefixReader, PrefixWriter } from "../threads/prefix-types.ts";
import { systemClock } from "./clock.ts";
import type { Compute, Control } from "./control-link.ts";
import { sourcesOf } from "./discovery/index.ts";
import { engineDoor } from "./engine-door.ts";
import { fleetAdmin } from "./fleet-admin.ts";
import { Gate } from "./gate.ts";
import { httpEngines } from "./http-engines.ts";
import { Jobs } from "./jobs.ts";
import { watchKvEvents } from "./kv/subscriptions.ts";
import { lifeSettings } from "./life-settings.ts";
import { watchLoads } from "./loads-monitor.ts";
import { fleetGauges, indexGauges } from "./metrics.ts";
import { ModelCatalog } from "./model-catalog.ts";
import { watchProgress } from "./progress.ts";
import { Publisher } from "./publisher.ts";
import { WorkerRegistry } from "./registry.ts";
import { routingRules } from "./routing.ts";
import { startShare } from "./share.ts";
import type { FleetSnapshot } from "./snapshot.ts";
import { snapshotOf } from "./snapshot-of.ts";
import { Sources } from "./sources.ts";
import { TokenizerRegistry } from "./tokenizers.ts";
import type { WorkerRecord } from "./worker-record.ts";
import type { WorkerSource } from "./worker-source.ts";
import { workerTls } from "./worker-tls.ts";

/** A worker that is ready, as the start tells of it. */
export interface ReadyWorker {
  readonly url: string;
  readonly model: string;
}

export interface FleetControl extends Pick<Control, "addTokenizer" | "removeTokenizer" | "admin"> {
  /** Resolves when the first worker is ready. */
  readonly ready: Promise<ReadyWorker>;
  /** What control has counted, and the workers as they are now. */
  counted(): Counted;
  close(): void;
}

/** The serving threads, as control tells them. */
export interface Threads {
  /** Resolves when every thread knows the new fleet. */
  apply(snapshot: FleetSnapshot): Promise<void>;
  /** A worker is out: requests that have not begun there go elsewhere. */
  lost(slot: number): void;
}

export interface ControlOptions {
  /** Folder of what is kept of models. */
  readonly cacheDir: string | undefined;
  /** Builds tables that are not at hand. */
  readonly compute: Pick<Compute, "build">;
  /** Holds the settings of a model hub. */
  readonly environment?: Environment;
  /** Where workers come from; those of the settings, unless given. */
  readonly sources?: readonly WorkerSource[];
  /** What the workers' caches hold, for all threads; without it nobody is asked. */
  readonly prefix?: PrefixWriter | undefined;
  /** Writes there what other gateways have sent where. */
  readonly others?: Pick<PrefixReader, "promise"> | undefined;
}

/** Tries and checks of workers that run at once. */
const CHECKS_AT_ONCE = 128;

/**
 * Brings the workers up, loads the models they serve, and watches them until they leave. The threads get the fleet at every change of
 * who is in it; states go to the board.
 */
export function startFleetControl(
  config: ServeConfig,
  board: FleetBoard,
  log: Logger,
  threads: Threads,
  { cacheDir, compute, environment = process.env, sources, prefix, others }: ControlOptions,
): FleetControl {
  const closing = new AbortController();
  const clock = systemClock();
  const catalog = new ModelCatalog(config, cacheDir, compute, { environment, log, signal: closing.signal });
  const jobs = new Jobs(clock);
  const metrics = new MetricRegistry();
  const ready = Promise.withResolvers<ReadyWorker>();
  const publisher = new Publisher(clock, () =>
    threads.apply(snapshotOf(registry, catalog.entries(), tokenizers.entries())),
  );
  const tls = workerTls(config);
  const door = engineDoor(catalog, httpEngines(config, tls), {
    engine: {
      transport: config.engineTransport,
      keepaliveMs: config.engineKeepaliveSecs * 1000,
      connectTimeoutMs: config.connectTimeoutMs,
      ...(tls !== undefined && { tls }),
    },
    checksGenerate: config.healthCheckGeneration,
    aliases: (id) => catalog.aliasesOf(id),
  });
  const registry: WorkerRegistry = new WorkerRegistry(
    board,
    { clock, door, gate: new Gate(CHECKS_AT_ONCE), log, random: Math.random, metrics },
    catalog,
    jobs,
    {
      drainMs: config.drainTimeoutSecs * 1000,
      removesFailed: config.removeUnhealthyWorkers,
      life: ({ health }) => lifeSettings(config, health),
      members: prefix,
      dpAware: config.dpAware,
      blockSize: config.blockSize,
    },
    {
      publish: () => publisher.tell(),
      leaving: () => kvEvents?.look(),
      lost: (slot) => threads.lost(slot),
      forgotten: (owners) => told.forget(owners),
      ready(found) {
        kvEvents?.look();
        if (found.kind === "http") addTokenizersOf(found.models);
        const { url, models: [model] = [] } = found;
        if (model !== undefined) ready.resolve({ url, model });
      },
    },
  );
  const told = new Sources(registry, log, metrics);
  const tell = () =>
    publisher.tell().catch((error: unknown) => log.error("the fleet could not be told to all threads", { error }));
  const tokenizers = new TokenizerRegistry(
    catalog,
    log,
    (name) => catalog.has(name),
    () => void tell(),
  );

  /** HTTP workers bring no tokenizer: their prompts are looked up by that of the settings, where there is one. */
  function addTokenizersOf(models: readonly string[]): void {
    const { chatTemplate: chatTemplatePath, modelPath, tokenizerPath: source = modelPath } = config;
    if (source === undefined) return;
    for (const name of models.filter((model) => !tokenizers.knows(model)))
      tokenizers.add({ name, source, ...(chatTemplatePath !== undefined && { chatTemplatePath }) });
  }

  const everyone = () => registry.everyone();
  const progress = watchProgress(everyone, board, config.workerStallSecs * 1000, clock, log, metrics);
  const loads = watchLoads(everyone, board, config.loadMonitorInterval * 1000, clock);
  const kvEvents =
    prefix &&
    watchKvEvents({
      workers: everyone,
      useful: () => toldOfCaches(config, everyone()),
      index: prefix,
      board,
      clock,
      log,
      metrics,
      publish: () => void tell(),
    });
  const url = config.routingRedisUrl;
  const share =
    url !== undefined && prefix !== undefined && others !== undefined
      ? startShare({ url, outbox: prefix, index: others, workers: everyone, clock, log, metrics })
      : undefined;
  void tell();
  told.start(sources ?? sourcesOf(config, clock, log), closing.signal);

  return {
    ready: ready.promise,
    counted: () => ({
      ...metrics.counted(),
      ...fleetGauges(registry.everyone(), board, config.engineMetrics),
      ...(prefix && indexGauges(prefix.stats())),
      ...share?.counted(),
      smg_discovery_workers_discovered: told.counts().map(([source, value]) => ({ labels: [source], value })),
    }),
    admin: fleetAdmin(registry, board, jobs),
    // Answered when all threads know: the client's next request may come to any of them.
    async addTokenizer(wanted) {
      const entry = tokenizers.add(wanted);
      await tell();
      return entry;
    },
    async removeTokenizer(id) {
      const removed = tokenizers.remove(id);
      await tell();
      return removed;
    },
    close() {
      closing.abort();
      progress.close();
      loads.close();
      kvEvents?.close();
      share?.close();
      registry.close();
      clock.close();
    },
  };
}

/**
 * Workers whose KV events are of use: where a policy goes by what caches hold, those of models that have a choice of caches. A lone
 * worker's events would fill memory that nobody reads.
 */
function* toldOfCaches(config: ServeConfig, workers: Iterable<WorkerRecord>): Generator<WorkerRecord> {
  const all = [...workers];
  const named = all.map(({ spec }) => spec.labels?.["policy"]);
  const policies = [...Object.values(routingRules(config).policies), ...named];
  if (!config.kvEvents || !policies.includes("cache_aware")) return;
  const caches = new Map<string, number>();
  for (const { found, members = [] } of all)
    for (const model of found?.models ?? []) caches.set(model, (caches.get(model) ?? 0) + members.length);
  for (const worker of all) if (worker.found?.models.some((model) => caches.get(model)! > 1)) yield worker;
}
