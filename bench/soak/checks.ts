/** What must hold after a soak. */
import type { Clients } from "./clients.ts";
import type { SoakGateway } from "./gateway.ts";
import { MISCHIEF } from "./mischief.ts";
import type { SoakOptions } from "./options.ts";
import type { Tally } from "./tally.ts";
import { type MemorySample, memorySlope } from "./trend.ts";
import type { SoakWorker } from "./workers.ts";

/** What a soak did and saw. */
export interface SoakFigures {
  readonly options: SoakOptions;
  /** Requests a second: those that the fleet bears, and those that were sent. */
  readonly capacity: number;
  readonly rate: number;
  /** Requests that were not sent, as too many were under way. */
  readonly heldBack: number;
  /** How often each kind of mischief was done. */
  readonly mischief: ReadonlyMap<string, number>;
  /** While the load was measured, without mischief. */
  readonly measured: Tally;
  readonly tally: Tally;
  readonly memory: readonly MemorySample[];
}

/** Checks that were made. */
export class Verdicts {
  passed = 0;
  failed = 0;
  readonly lines: string[] = [];

  check(holds: boolean, what: string): void {
    if (holds) this.passed++;
    else this.failed++;
    this.lines.push(`${holds ? "ok    " : "FAILED"} ${what}`);
  }
}

/** The fault of one worker must not cost the others' requests: so many of those whose client stays are answered. */
const LEAST_EXACT = 0.85;
/** Memory is judged from here on: shorter runs are still warming up. */
const JUDGE_MEMORY_SECS = 600;
const WARM_UP = 0.2;
const MOST_MB_A_MINUTE = 1;
/** Time for engines to hear of streams that ended, and for workers to be taken back. */
const SETTLE_MS = 5000;
const RETURN_MS = 40_000;
const LAST_REQUESTS = 40;
/** More than the successes that close a breaker, at each of the workers of the chat. */
const PROBES = 20;

/** Checks the answers first, then what is left behind, then that all goes on as before. */
export async function checkSoak(
  verdicts: Verdicts,
  figures: SoakFigures,
  clients: Clients,
  workers: readonly SoakWorker[],
  gateway: SoakGateway,
): Promise<void> {
  const { tally, measured, mischief, memory, options } = figures;
  verdicts.check(
    tally.wrong.length === 0,
    `no token lost, doubled or foreign: ${tally.wrong.length} of ${tally.all} answers`,
  );
  const clean = measured.wrong.length + measured.failed === 0;
  verdicts.check(
    clean,
    `without faults every answer is whole: ${measured.wrong[0] ?? [...measured.codes.keys()].join()}`,
  );
  const share = tally.exact / Math.max(1, tally.all - tally.aborted);
  verdicts.check(share >= LEAST_EXACT, `${(share * 100).toFixed(1)} % of the answers are whole, in spite of faults`);
  const missing = MISCHIEF.filter((kind) => !mischief.has(kind));
  verdicts.check(
    missing.length === 0,
    `every kind of fault came${missing.length > 0 ? `, but ${missing.join(", ")}` : ""}`,
  );
  verdicts.check(tally.late > 0 && tally.aborted > 0, `${tally.late} streams broke, ${tally.aborted} clients left`);

  const bookings = await becomesZero(() => gateway.bookings());
  verdicts.check(bookings === 0, `requests that stay booked: ${bookings}`);
  for (const worker of workers) {
    const open = await becomesZero(async () => (await worker.stats()).open);
    verdicts.check(open === 0, `requests that stay open at ${worker.dialect}: ${open}`);
  }

  const lost = await becomesZero(async () => (await gateway.unhealthy()).length, RETURN_MS);
  verdicts.check(lost === 0, `workers that never came back: ${lost}`);
  for (const api of ["http", "chat"] as const) await closeBreakers(clients, api);
  const last = await Promise.all(
    Array.from({ length: LAST_REQUESTS }, (_, i) => clients.send(i % 2 ? "http" : "chat")),
  );
  const whole = last.filter(({ kind }) => kind === "exact").length;
  verdicts.check(whole === LAST_REQUESTS, `${whole} of ${LAST_REQUESTS} requests afterwards are answered`);

  if (options.seconds < JUDGE_MEMORY_SECS) return;
  const slope = memorySlope(memory, WARM_UP);
  verdicts.check(slope < MOST_MB_A_MINUTE, `memory grows by ${slope.toFixed(2)} MB a minute`);
}

/**
 * One request at a time until several in a row are answered. The last faults may have left a breaker half open, and it lets a single
 * probe through then: requests that come together with the probe are refused, as they should be.
 */
async function closeBreakers(clients: Clients, api: Parameters<Clients["send"]>[0]): Promise<void> {
  const until = performance.now() + RETURN_MS;
  for (let inARow = 0; inARow < PROBES && performance.now() < until; ) {
    inARow = (await clients.send(api)).kind === "exact" ? inARow + 1 : 0;
    if (inARow === 0) await Bun.sleep(100);
  }
}

/** Asks until it is 0 or the time is over; gives the last answer. */
async function becomesZero(ask: () => Promise<number>, limitMs = SETTLE_MS): Promise<number> {
  const until = performance.now() + limitMs;
  for (;;) {
    const value = await ask();
    if (value === 0 || performance.now() > until) return value;
    await Bun.sleep(50);
  }
}
