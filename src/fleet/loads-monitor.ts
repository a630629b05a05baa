/** Asks workers for their load, and writes it on the board. */
import { EngineError } from "../engines/engine.ts";
import { Feature } from "../engines/features.ts";
import type { Clock } from "./clock.ts";
import { type LoadBoard, tellLoads } from "./rank-loads.ts";
import { slotsOf, type WorkerRecord } from "./worker-record.ts";

const DEADLINE_MS = 5000;
/** A worker without requests of ours is asked so much more rarely. */
const IDLE_FACTOR = 6;

/** What is known of one worker's ways. */
interface Asked {
  /** Rounds until it is asked again, if it stays idle. */
  rounds: number;
  /** It said that it has none. */
  never: boolean;
}

/** Those of a role that is not routed to are left alone: being asked ends older encode workers of TokenSpeed. */
const isAsked = ({ status, found, spec }: WorkerRecord): boolean =>
  (status === "ready" || status === "not_ready") &&
  found !== undefined &&
  (found.facts === undefined || (found.facts.features & Feature.loads) !== 0) &&
  found.facts?.role !== "encode" &&
  spec.workerType !== "encode";

export function watchLoads(
  workers: () => Iterable<WorkerRecord>,
  board: LoadBoard,
  everyMs: number,
  clock: Clock,
): { close(): void } {
  const known = new WeakMap<WorkerRecord, Asked>();
  let callOff = clock.after(everyMs, round);
  let isClosed = false;

  function round(): void {
    for (const record of workers()) if (isAsked(record)) lookAt(record);
    callOff = clock.after(everyMs, round);
  }

  function lookAt(record: WorkerRecord): void {
    const its = known.get(record) ?? { rounds: 0, never: false };
    known.set(record, its);
    if (its.never || clock.now() - (record.loadToldAt ?? 0) < everyMs) return;
    const isIdle = slotsOf(record).every((slot) => board.running(slot) === 0);
    if (isIdle && its.rounds-- > 0) return;
    its.rounds = IDLE_FACTOR - 1;
    ask(record).catch((error: unknown) => {
      // whatever else is wrong with it is for the health checks to find
      its.never = error instanceof EngineError && error.kind === "unimplemented";
    });
  }

  async function ask(record: WorkerRecord): Promise<void> {
    const { life } = record;
    const ranks = await life.contact?.loads(DEADLINE_MS);
    if (ranks === undefined || ranks.length === 0 || isClosed || !life.isAlive) return;
    tellLoads(record, ranks, board);
  }

  return {
    close() {
      isClosed = true;
      callOff();
    },
  };
}
