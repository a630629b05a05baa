/** Who sends KV events, and what comes of them: the prefix index, the load of workers, and what threads are told of a worker. */
import { Feature } from "../../engines/features.ts";
import type { Logger } from "../../telemetry/log.ts";
import type { MetricRegistry } from "../../telemetry/registry.ts";
import type { PrefixWriter } from "../../threads/prefix-types.ts";
import type { Clock } from "../clock.ts";
import { type LoadBoard, tellRankLoad } from "../rank-loads.ts";
import { type Answering, slotsOf, type WorkerRecord } from "../worker-record.ts";
import { KvFeed } from "./feed.ts";
import { type Work, type WorkQueue, workQueue } from "./work.ts";

/** How often the index is tended. */
const TEND_MS = 1000;
/** As long as nothing is in the index, so that an idle process sleeps. */
const EMPTY_TEND_MS = 10_000;
/** Parts of the index that are looked at then, one at a time; more of them where it is nearly full. */
const PARTS = 32;
const PARTS_WHEN_FULL = 4;
const FULL = 0.75;
/** Below this nobody needs the room of what is old, and an idle gateway has next to nothing to do. */
const SPARSE = 0.5;
/** Then a whole pass takes four hours: times of guesses have few bits, and what nobody believes any more must be gone before they come round. */
const PASS_WHEN_SPARSE_S = 14_400;
/** Entries that are looked at in one piece. */
const PIECE = 4096;

export interface KvWatch {
  /** Somebody came, became ready or is leaving. */
  look(): void;
  close(): void;
}

export interface KvBoard extends LoadBoard {
  /** When anything last came from a worker, in milliseconds since 1970; 0 = never. */
  lastProgress(slot: number, now: number): number;
}

export interface KvWatchOptions {
  readonly workers: () => Iterable<WorkerRecord>;
  /** Those of them whose events are of use. One that is subscribed to stays so while it is there. */
  readonly useful: () => Iterable<WorkerRecord>;
  readonly index: PrefixWriter;
  readonly board: KvBoard;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricRegistry;
  /** What threads know of a worker has changed. */
  readonly publish: () => void;
  readonly work?: WorkQueue;
}

/** Subscribes to every worker that has KV events, and tends the index. */
export function watchKvEvents(options: KvWatchOptions): KvWatch {
  const { workers, useful, index, board, clock, log, metrics, publish, work = workQueue() } = options;
  const around = { clock, log, metrics, work, index };
  const feeds = new Map<WorkerRecord, KvFeed>();
  let callOff = clock.after(EMPTY_TEND_MS, tend);

  function tend(): void {
    const isEmpty = !index.isUsed || index.stats().places === 0;
    if (!isEmpty) work.add(tended());
    callOff = clock.after(isEmpty ? EMPTY_TEND_MS : TEND_MS, tend);
  }

  function* tended(): Work {
    const { capacity } = index;
    const { places } = index.stats();
    index.sweep(capacity / PASS_WHEN_SPARSE_S, clock.now());
    if (places < SPARSE * capacity && !index.sweepHashes(PIECE)) return;
    const isFull = places > FULL * capacity;
    for (let left = Math.ceil(capacity / (isFull ? PARTS_WHEN_FULL : PARTS)); left > 0; left -= PIECE) {
      index.sweep(Math.min(left, PIECE), clock.now());
      index.sweepHashes(PIECE);
      yield;
    }
  }

  function feedOf(record: Answering, members: readonly number[]): KvFeed {
    const { found, spec, life } = record;
    return new KvFeed(
      {
        url: spec.url,
        model: found.cacheNames?.get(found.models[0]!)?.model ?? found.models[0]!,
        members,
        source: () => life.contact?.kvEvents?.(),
        isLeaving: () => !life.isAlive,
        hasAnsweredSince: (time) => slotsOf(record).some((slot) => board.lastProgress(slot, clock.now()) > time),
        changed(sendsEvents, blockSize) {
          record.sendsEvents = sendsEvents;
          if (blockSize !== undefined) record.blockSize = blockSize;
          publish();
        },
        load: (load) => tellRankLoad(record, load, board, clock.now()),
      },
      around,
    );
  }

  return {
    look() {
      const staying = new Set<WorkerRecord>();
      for (const record of workers()) if (record.life.isAlive) staying.add(record);
      for (const record of useful()) {
        if (!staying.has(record)) continue;
        if (!feeds.has(record) && sendsEvents(record)) feeds.set(record, feedOf(record, record.members ?? []));
      }
      for (const [record, feed] of feeds) {
        if (staying.has(record)) continue;
        feeds.delete(record);
        feed.close();
      }
    },
    close() {
      callOff();
      work.close();
      for (const feed of feeds.values()) feed.close();
      feeds.clear();
    },
  };
}

/** It has registered, has a place in the index, and offers them as far as is known. */
function sendsEvents(record: WorkerRecord): record is Answering {
  const { found, members = [], life } = record;
  if (found?.models[0] === undefined || members.length === 0 || life.contact?.kvEvents === undefined) return false;
  return found.facts === undefined || found.kind === "http" || (found.facts.features & Feature.kvEvents) !== 0;
}
