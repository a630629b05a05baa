/**
 * A thread that promises and looks up prompts as quickly as it can. What it may write, and what may ever be found, follows from the
 * numbers of prompt and cache alone, so that a single wrong match shows.
 */
import { PrefixBoard } from "../../../src/threads/prefix-board.ts";
import type { ChainKeys } from "../../../src/threads/prefix-types.ts";
import { random } from "../generation/random.ts";

declare const self: Worker;

export const CHAINS = 80;
export const BLOCKS = 40;
export const CACHES = 20;

/** Cells that the threads of a test share, besides the board. */
export const Shared = { flag: 0, halted: 1, wrong: 2, found: 3, promised: 4, members: 16, SIZE: 64 } as const;
/** Values of `Shared.flag`: do as you like; halt; promise what you have to, and halt. */
export const Flag = { run: 0, halt: 1, work: 2 } as const;

export interface PrefixTask {
  readonly board: WebAssembly.Memory;
  readonly shared: SharedArrayBuffer;
  readonly thread: number;
  readonly seed: number;
}

export const stressChains: readonly ChainKeys[] = Array.from({ length: CHAINS }, (_, i) => {
  const { below } = random(1000 + i);
  return { keys: new Int32Array(BLOCKS * 2).map(() => below(2 ** 32) | 0), count: BLOCKS, blockSize: 16 };
});

/** Blocks of a prompt that are ever written for a cache; none of every third. */
export function most(chain: number, cache: number): number {
  const { below } = random(chain * CACHES + cache);
  return below(3) === 0 ? 0 : below(BLOCKS + 1);
}

/** Blocks that a thread has to promise. */
export function due(thread: number, chain: number, cache: number): number {
  const { below } = random((thread * CHAINS + chain) * CACHES + cache + 7);
  return below(2) === 0 ? 0 : below(most(chain, cache) + 1);
}

const MOST = stressChains.map((_, chain) => Array.from({ length: CACHES }, (__, cache) => most(chain, cache)));

async function run({ board, shared, thread, seed }: PrefixTask): Promise<void> {
  const cells = new Int32Array(shared);
  const reader = PrefixBoard.open(board).reader(thread);
  const { below } = random(seed);
  const memberOf = (cache: number) => Atomics.load(cells, Shared.members + cache);
  const promise = (chain: number, count: number, cache: number) =>
    reader.promise({ ...stressChains[chain]!, count }, 0, memberOf(cache), Date.now());

  const look = (chain: number) => {
    const members = Array.from({ length: CACHES }, (_, cache) => memberOf(cache));
    const match = reader.match(stressChains[chain]!);
    let found = 0;
    for (let cache = 0; cache < CACHES; cache++) {
      const depth = match.depth(members[cache]!);
      if (depth > MOST[chain]![cache]!) Atomics.add(cells, Shared.wrong, 1);
      if (depth > 0) found++;
    }
    Atomics.add(cells, Shared.found, found);
  };

  const isDone = () =>
    stressChains.every((chain, i) => {
      const match = reader.match(chain);
      return MOST[i]!.every((_, cache) => match.depth(memberOf(cache)) >= due(thread, i, cache));
    });

  for (;;) {
    const flag = Atomics.load(cells, Shared.flag);
    if (flag === Flag.run) {
      for (let i = 0; i < 50; i++) {
        const chain = below(CHAINS);
        const cache = below(CACHES);
        if (below(3) === 0) promise(chain, below(MOST[chain]![cache]! + 1), cache);
        else look(chain);
      }
      Atomics.add(cells, Shared.promised, 1);
      await Bun.sleep(0);
      continue;
    }
    if (flag === Flag.work)
      for (let chain = 0; chain < CHAINS; chain++)
        for (let cache = 0; cache < CACHES; cache++) {
          const count = due(thread, chain, cache);
          if (count > 0) promise(chain, count, cache);
        }
    // what was put off is written by and by
    for (let i = 0; i < 1000 && !(flag === Flag.work ? isDone() : i > 30); i++) await Bun.sleep(2);
    Atomics.add(cells, Shared.halted, 1);
    while (Atomics.load(cells, Shared.flag) === flag) Atomics.wait(cells, Shared.flag, flag);
  }
}

if (!Bun.isMainThread) self.onmessage = ({ data }: MessageEvent<PrefixTask>) => void run(data);
