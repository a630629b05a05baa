/**
 * A thread that does with the boards what serving threads do, as quickly as it can, and keeps its own account of it. It runs until
 * `Flag.stop`, and halts at `Flag.halt` to tell its account.
 */
import { FleetBoard, WorkerState } from "../../../src/threads/fleet-board.ts";
import { LimitBoard } from "../../../src/threads/limit-board.ts";
import { random } from "../generation/random.ts";

declare const self: Worker;

export const WORKERS = 6;
export const PERMITS = 7;

/** Cells that the threads of a test share, besides the boards. */
export const Shared = {
  /** 0 = run, 1 = halt, 2 = stop. */
  flag: 0,
  halted: 1,
  /** Bits of threads that were killed. */
  dead: 2,
  /** What must never happen: see `Wrong`. */
  wrong: 3,
  slots: 16,
  /** Which thread (plus 1) believes that it alone tries a worker, by row; with the row's epoch << 8. */
  probing: 32,
  /** Which thread (plus 1) believes that it has a permit. */
  running: 64,
  /** Accounts: [done, booked, tried, read], then for each worker [slot, running, begun, tokens]. */
  accounts: 128,
  ACCOUNT: 64,
  SIZE: 1024,
} as const;

/** Bits of `Shared.wrong`. */
export const Wrong = { probe: 1, permit: 2, load: 4, state: 8 } as const;

export interface StressTask {
  readonly fleet: SharedArrayBuffer;
  readonly limits: SharedArrayBuffer;
  readonly shared: SharedArrayBuffer;
  readonly thread: number;
  readonly seed: number;
}

/** What control reports of a worker: every part follows from `number` and the slot, so that half of another record shows. */
export const loadRecord = (number: number, slot: number) => ({
  running: number,
  waiting: number + 1,
  waitingTokens: number * 2,
  usedTokens: slot,
  capacityTokens: number + slot,
  tokenUsage: (number % 1000) / 1000,
  throughput: number + 7,
});

interface Held {
  readonly slot: number;
  readonly tokens: number;
  begun: boolean;
  probes: boolean;
}

function run({ fleet, limits, shared, thread, seed }: StressTask): void {
  const board = FleetBoard.open(fleet);
  const permits = LimitBoard.open(limits, thread);
  const cells = new Int32Array(shared);
  const { below } = random(seed);
  const account = Shared.accounts + thread * Shared.ACCOUNT;
  const me = thread + 1;
  const held: Held[] = [];
  const mine: number[] = [];

  const wrong = (what: number) => Atomics.or(cells, Shared.wrong, what);
  /** Nobody has it but a thread that was killed. */
  const isFree = (owner: number) => owner === 0 || (Atomics.load(cells, Shared.dead) & (1 << (owner - 1))) !== 0;
  const count = (what: number) => Atomics.add(cells, account + what, 1);
  const tries = (slot: number) => ((slot >>> 10) << 8) | me;
  const drop = () => held.splice(below(held.length), 1)[0]!;

  const endProbe = (lease: Held, outcome: "ok" | "failure" | "neutral") => {
    if (!lease.probes) return;
    lease.probes = false;
    Atomics.compareExchange(cells, Shared.probing + (lease.slot % 1024), tries(lease.slot), 0);
    board.breaker.probed(lease.slot, thread, outcome, Date.now());
  };

  const book = () => {
    const slot = Atomics.load(cells, Shared.slots + below(WORKERS));
    if (board.state(slot) !== WorkerState.ready) return;
    let probes = false;
    if (!board.breaker.isClosed(slot)) {
      if (!board.breaker.tryProbe(slot, thread, Date.now())) return;
      probes = true;
      const owner = Atomics.exchange(cells, Shared.probing + (slot % 1024), tries(slot));
      if (owner >>> 8 === slot >>> 10 && !isFree(owner & 255)) wrong(Wrong.probe);
      count(2);
    }
    const tokens = below(1000);
    if (!board.book(slot, thread, tokens)) return;
    held.push({ slot, tokens, begun: false, probes });
    count(1);
  };

  const end = () => {
    const lease = drop();
    const failed = below(5) < 2;
    endProbe(lease, failed ? "failure" : "ok");
    board.release(lease.slot, thread, lease.tokens, lease.begun);
    board.breaker.count(lease.slot, thread, failed, false, Date.now());
  };

  const begin = () => {
    const lease = held[below(held.length)]!;
    if (lease.begun) {
      board.progress(lease.slot, thread);
      return;
    }
    lease.begun = true;
    board.begun(lease.slot, thread, lease.tokens);
  };

  const read = () => {
    const slot = Atomics.load(cells, Shared.slots + below(WORKERS));
    const found = board.load(slot);
    if (found === undefined) return;
    count(3);
    const whole = loadRecord(found.load.running, slot);
    for (const [name, value] of Object.entries(whole))
      if (found.load[name as keyof typeof whole] !== value) wrong(Wrong.load);
    if (board.running(slot) < 0 || board.queuedTokens(slot) < 0 || board.begunCount(slot) < 0) wrong(Wrong.state);
  };

  const giveBack = (old: number) => {
    Atomics.compareExchange(cells, Shared.running + old, me, 0);
    permits.ran(old);
  };
  const permit = () => {
    if (mine.length > 0 && below(2) === 0) {
      giveBack(mine.splice(below(mine.length), 1)[0]!);
      return;
    }
    const got = permits.tryRun();
    if (got < 0) return;
    if (!isFree(Atomics.exchange(cells, Shared.running + got, me))) wrong(Wrong.permit);
    mine.push(got);
  };

  const tell = () => {
    for (let i = 0; i < WORKERS; i++) {
      const slot = Atomics.load(cells, Shared.slots + i);
      const here = held.filter((lease) => lease.slot === slot);
      const waits = here.filter(({ begun }) => !begun);
      const at = account + 4 + i * 4;
      Atomics.store(cells, at, slot);
      Atomics.store(cells, at + 1, here.length);
      Atomics.store(cells, at + 2, here.length - waits.length);
      Atomics.store(
        cells,
        at + 3,
        waits.reduce((sum, { tokens }) => sum + tokens, 0),
      );
    }
    Atomics.store(cells, account, mine.length);
  };

  for (;;) {
    const flag = Atomics.load(cells, Shared.flag);
    if (flag !== 0) {
      if (flag === 2) {
        while (held.length > 0) end();
        for (const old of mine.splice(0)) giveBack(old);
      }
      tell();
      Atomics.add(cells, Shared.halted, 1);
      if (flag === 2) return;
      Atomics.wait(cells, Shared.flag, 1);
      continue;
    }
    const what = below(8);
    if (what < 3 && held.length < 40) book();
    else if (what < 5 && held.length > 0) end();
    else if (what === 5 && held.length > 0) begin();
    else if (what === 6) read();
    else permit();
  }
}

if (!Bun.isMainThread) {
  self.onmessage = ({ data }: MessageEvent<StressTask>) => {
    run(data);
    self.postMessage("stopped");
  };
}
