/** What goes wrong in the soak: engines that are killed, freeze, cut off, stall and stumble, one after another. */
import type { Random } from "../loadgen/random.ts";
import type { SoakWorker } from "./workers.ts";

type Mischief = (worker: SoakWorker, random: Random) => Promise<void>;

/** Tokens after which a request meets its fault: none, a few, or so many that some end before. */
const afterTokens = (random: Random): number => (random.below(4) === 0 ? 0 : random.below(60));
const meets =
  (fault: object): Mischief =>
  (worker, random) =>
    worker.fault({ ...fault, after_tokens: afterTokens(random) });

const FREEZE_MS = 5000;
const LONGEST_DOWN_MS = 2000;

const KINDS: Readonly<Record<string, Mischief>> = {
  kill: (worker, random) => worker.kill(random.below(LONGEST_DOWN_MS)),
  freeze: (worker) => worker.freeze(FREEZE_MS),
  reset: meets({ kind: "reset" }),
  disconnect: meets({ kind: "disconnect" }),
  stall: meets({ kind: "stall" }),
  hang: (worker) => worker.fault({ kind: "hang" }),
  status: meets({ kind: "status", code: "UNAVAILABLE", message: "gone" }),
  full: (worker) => worker.fault({ kind: "status", code: "RESOURCE_EXHAUSTED", message: "full" }),
  garble: meets({ kind: "garble" }),
  "no end": (worker) => worker.fault({ kind: "no-complete" }),
  goaway: meets({ kind: "goaway" }),
  "goaway with an error": meets({ kind: "goaway", code: "PROTOCOL_ERROR" }),
};
/** HTTP/1.1 knows no such thing, or it is the client's to see: answers of HTTP engines are passed on as they come. */
const GRPC_ONLY = new Set(["goaway", "goaway with an error", "garble", "no end"]);

/** All kinds of mischief. */
export const MISCHIEF: readonly string[] = Object.keys(KINDS);

/**
 * Does mischief until `isOver`, every `gapMs` or so; each kind as often as the others. Gives how often each was done. Rejects if an engine
 * does not come back, or does not do as told.
 */
export async function makeMischief(
  workers: readonly SoakWorker[],
  random: Random,
  gapMs: number,
  isOver: () => boolean,
): Promise<ReadonlyMap<string, number>> {
  const done = new Map<string, number>();
  const busy = new Map<SoakWorker, Promise<void>>();
  const failures: unknown[] = [];
  let deck: string[] = [];
  const rest = () => Bun.sleep(gapMs * (0.5 + random.unit()));
  for (await rest(); !isOver(); await rest()) {
    if (deck.length === 0) deck = [...MISCHIEF];
    const kind = deck.splice(random.below(deck.length), 1)[0]!;
    const able = workers.filter((worker) => !busy.has(worker) && !(worker.isHttp && GRPC_ONLY.has(kind)));
    const worker = able[random.below(able.length)];
    if (worker === undefined) continue;
    const deed = KINDS[kind]!(worker, random)
      .catch((error: unknown) => void failures.push(error))
      .finally(() => busy.delete(worker));
    busy.set(worker, deed);
    done.set(kind, (done.get(kind) ?? 0) + 1);
  }
  await Promise.all(busy.values());
  if (failures.length > 0) throw failures[0];
  return done;
}
