/** A fleet whose time a test moves, and whose workers do what it says; registry, sources and board are the real ones. */
import type { RankLoad } from "../../../src/engines/admin.ts";
import { dialectByName, unknownFacts } from "../../../src/engines/dialects.ts";
import { EngineError } from "../../../src/engines/engine.ts";
import type { Door, Found } from "../../../src/fleet/door.ts";
import { fleetAdmin } from "../../../src/fleet/fleet-admin.ts";
import { Gate } from "../../../src/fleet/gate.ts";
import { Jobs } from "../../../src/fleet/jobs.ts";
import type { LifeSettings } from "../../../src/fleet/life-settings.ts";
import { WorkerRegistry } from "../../../src/fleet/registry.ts";
import type { FleetSnapshot } from "../../../src/fleet/snapshot.ts";
import { snapshotOf } from "../../../src/fleet/snapshot-of.ts";
import { Sources } from "../../../src/fleet/sources.ts";
import type { Members } from "../../../src/fleet/worker-record.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { FleetBoard } from "../../../src/threads/fleet-board.ts";
import { FakeClock } from "../../support/fake-clock.ts";

/** What a worker at an address does. */
export interface Script {
  /** Why it does not answer; undefined: it does. */
  problem?: string | undefined;
  model: string;
  identity: string;
  /** Data-parallel ranks; undefined: it tells no facts. */
  ranks?: number;
  loads?: readonly RankLoad[] | undefined;
  /** Its checks are not answered, until their connection is closed. */
  hangs?: boolean;
  /** Why it does nothing that it is asked to. */
  refuses?: string;
  /** Checks and tries so far, questions for its load, and connections that are open. */
  asked: number;
  askedLoads: number;
  open: number;
  /** Loses the connection that is open. */
  lose: () => void;
}

export const rank = (more: Partial<RankLoad> = {}): RankLoad => ({
  rank: 0,
  running: 0,
  waiting: 0,
  waitingUncachedTokens: undefined,
  usedTokens: undefined,
  capacityTokens: undefined,
  tokenUsage: undefined,
  throughput: undefined,
  cacheHitRate: undefined,
  utilization: undefined,
  maxRunning: undefined,
  ...more,
});

const SETTINGS: LifeSettings = {
  thresholds: { failures: 3, successes: 2 },
  startupTimeoutMs: 60_000,
  startupPauseMs: 5000,
  intervalMs: 60_000,
  timeoutMs: 5000,
  stallMs: 30_000,
  isUnwatched: false,
};

export function lifeWorld({
  drainMs = 10_000,
  removesFailed = false,
  settings = {},
  dpAware = false,
  members,
}: {
  drainMs?: number;
  removesFailed?: boolean;
  settings?: Partial<LifeSettings>;
  dpAware?: boolean;
  members?: Members;
} = {}) {
  const clock = new FakeClock();
  const board = FleetBoard.create(1);
  const scripts = new Map<string, Script>();
  const script = (url: string): Script => {
    let found = scripts.get(url);
    if (found === undefined) {
      found = { model: "served", identity: "1", asked: 0, askedLoads: 0, open: 0, lose: () => {} };
      scripts.set(url, found);
    }
    return found;
  };
  const models = new Set<string>();
  const answer = (its: Script): void => {
    its.asked++;
    if (its.problem !== undefined) throw new EngineError("unavailable", its.problem);
  };
  const door: Door = {
    async register({ url }): Promise<Found> {
      const its = script(url);
      answer(its);
      models.add(its.model);
      const facts =
        its.ranks === undefined ? undefined : { ...unknownFacts(dialectByName("vllm")!), dataParallelSize: its.ranks };
      const rest = { facts, waitsForReasoning: undefined, httpModels: [] };
      return { url, kind: "grpc", dialect: "vllm", models: [its.model], identity: its.identity, ...rest };
    },
    contact({ url }, _found, onLost) {
      const its = script(url);
      its.open++;
      its.lose = onLost;
      const closed = Promise.withResolvers<void>();
      const done = async () => ({ success: its.refuses === undefined, message: its.refuses ?? "" });
      return {
        check: () => (its.hangs === true ? closed.promise : Promise.try(answer, its)),
        identity: async () => {
          if (its.problem !== undefined) throw new EngineError("unavailable", its.problem);
          return its.identity;
        },
        serving: async () => "serving",
        async loads() {
          its.askedLoads++;
          if (its.loads === undefined) throw new EngineError("unimplemented", "no loads");
          return its.loads;
        },
        flushCache: done,
        startProfile: done,
        stopProfile: done,
        close() {
          its.open--;
          closed.reject(new EngineError("unavailable", "closed"));
          closed.promise.catch(() => {});
        },
      };
    },
  };
  const lines: string[] = [];
  const log = createLogger({ level: "debug", json: false, write: (line) => lines.push(line) });
  const jobs = new Jobs(clock);
  const lost: number[] = [];
  const snapshots: FleetSnapshot[] = [];
  const registry: WorkerRegistry = new WorkerRegistry(
    board,
    { clock, door, gate: new Gate(128), log, random: () => 0.5 },
    { holds: (id) => models.has(id), drop: (id) => void models.delete(id) },
    jobs,
    { drainMs, removesFailed, life: () => ({ ...SETTINGS, ...settings }), dpAware, members },
    {
      publish: async () => void snapshots.push(snapshotOf(registry, [], [])),
      lost: (slot) => void lost.push(slot),
      ready: () => {},
      forgotten: (owners) => sources.forget(owners),
    },
  );
  const sources: Sources = new Sources(registry, log);
  return {
    clock,
    board,
    registry,
    sources,
    jobs,
    log,
    lines,
    lost,
    models,
    script,
    admin: fleetAdmin(registry, board, jobs),
    /** Who serving threads know of, by URL and model. */
    known: () => (snapshots.at(-1)?.workers ?? []).map(({ url, model }) => `${url} ${model}`),
    workers: () => snapshots.at(-1)?.workers ?? [],
    slots: () => (snapshots.at(-1)?.workers ?? []).map(({ slot }) => slot),
    status: () => registry.list().map(({ status }) => status),
  };
}

export const A = "grpc://10.0.0.1:50051";
export const B = "grpc://10.0.0.2:50051";
