/** Frozen workers: their port may be open, and their health check may answer, but nothing comes of their requests. */
import type { Logger } from "../telemetry/log.ts";
import { MetricRegistry } from "../telemetry/registry.ts";
import type { Clock } from "./clock.ts";
import { slotsOf, type WorkerRecord } from "./worker-record.ts";

/** A stall is seen this much too late at most, as a share of the time that makes one. */
const LATE = 1 / 10;
/** With no request in flight anywhere, looks are so much rarer. */
const IDLE_FACTOR = 10;
const SHORTEST_LOOK_MS = 100;
const LONGEST_LOOK_MS = 1000;
const LOADS_MS = 5000;
/** The board's times are tenths of a second. */
const COARSE_MS = 200;

/** What is looked at on the board. */
export interface Movement {
  /** Requests in flight. */
  running(slot: number): number;
  /** How long nothing has come though there were requests, in milliseconds. */
  silentMs(slot: number, now: number): number;
  /** When something last came; only that moves it. 0 = never. */
  lastProgress(slot: number, now: number): number;
  /** Somebody could not reach it a moment ago. */
  isAvoided(slot: number, now: number): boolean;
}

/** One worker that has requests. */
interface Watched {
  /** Since when it has been silent; earlier examinations are forgotten when that changes. */
  silent: number;
  /** When it was last examined; else as `silent`. */
  since: number;
  isExamined: boolean;
  /** What it said of its load then. */
  load: string | undefined;
}

export interface ProgressMonitor {
  close(): void;
}

/**
 * Takes workers out whose requests do not move for `stallMs`: at once if they do not answer then, and after the same time once more if
 * they answer, but say that they run something, and that in the same words as before.
 */
export function watchProgress(
  workers: () => Iterable<WorkerRecord>,
  board: Movement,
  stallMs: number,
  clock: Clock,
  log: Logger,
  metrics: MetricRegistry = new MetricRegistry(),
): ProgressMonitor {
  const watched = new Map<WorkerRecord, Watched>();
  /** When something had last come of each. */
  const outputs = new WeakMap<WorkerRecord, number>();
  const lookMs = Math.min(Math.max(stallMs * LATE, SHORTEST_LOOK_MS), LONGEST_LOOK_MS);
  let callOff = () => {};
  const running = (record: WorkerRecord) => slotsOf(record).reduce((sum, slot) => sum + board.running(slot), 0);
  const lastProgress = (record: WorkerRecord, now: number) =>
    Math.max(...slotsOf(record).map((slot) => board.lastProgress(slot, now)));
  /** As long as something comes of one rank, the worker moves. */
  const silentMs = (record: WorkerRecord, now: number) =>
    Math.min(
      ...slotsOf(record)
        .filter((slot) => board.running(slot) > 0)
        .map((slot) => board.silentMs(slot, now)),
    );

  function look(): void {
    const now = clock.now();
    const seen = new Set<WorkerRecord>();
    for (const record of workers()) {
      if (record.status === "draining" || record.found === undefined) continue;
      if (slotsOf(record).some((slot) => board.isAvoided(slot, now))) record.life.look();
      forgive(record, lastProgress(record, now));
      if (running(record) === 0) continue;
      seen.add(record);
      lookAt(record, now);
    }
    for (const record of watched.keys()) if (!seen.has(record)) watched.delete(record);
    callOff = clock.after(watched.size > 0 ? lookMs : lookMs * IDLE_FACTOR, look);
  }

  /** Earlier stalls are forgiven for what comes of a worker only: new requests are sent to it however often it froze. */
  function forgive(record: WorkerRecord, output: number): void {
    if (output === (outputs.get(record) ?? 0)) return;
    outputs.set(record, output);
    record.life.moved();
  }

  function lookAt(record: WorkerRecord, now: number): void {
    const silent = now - silentMs(record, now);
    let its = watched.get(record);
    if (its === undefined || silent > its.silent + COARSE_MS) {
      its = { silent, since: silent, isExamined: false, load: undefined };
      watched.set(record, its);
    }
    if (its.isExamined || now - its.since < stallMs || record.life.isUnwatched) return;
    const one = its;
    one.isExamined = true;
    void examine(record, one).finally(() => {
      one.isExamined = false;
      one.since = clock.now();
    });
  }

  async function examine(record: WorkerRecord, its: Watched): Promise<void> {
    const isStill = () => watched.get(record) === its && running(record) > 0;
    const problem = await record.life.examine();
    if (!isStill()) return;
    if (problem !== undefined) return stall(record, `its requests do not move, and it does not answer: ${problem}`);
    const load = await loadOf(record);
    if (!isStill()) return;
    if (load === undefined || load !== its.load) its.load = load;
    else stall(record, "its requests do not move, though it answers");
  }

  function stall(record: WorkerRecord, problem: string): void {
    if (!record.life.stall(problem)) return;
    metrics.counter("collie_worker_stalls_total", record.spec.url).add();
    log.warn("a worker is stalled", { worker: record.spec.url, requests: running(record) });
  }

  if (stallMs > 0) callOff = clock.after(lookMs * IDLE_FACTOR, look);
  return { close: () => callOff() };
}

/** What a worker says of its load while it runs something; undefined: it runs nothing, or does not say. */
async function loadOf({ life }: WorkerRecord): Promise<string | undefined> {
  try {
    const ranks = (await life.contact?.loads(LOADS_MS)) ?? [];
    return ranks.some(({ running }) => running > 0) ? JSON.stringify(ranks) : undefined;
  } catch {
    return undefined;
  }
}
