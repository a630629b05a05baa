/** A thread over a shared tokenizer cache: encodes what its seed chooses, and counts what is not as without the cache. */

import { Level, openCacheBoard } from "../../src/tokenizer/cache/board.ts";
import { cachedTokenizer } from "../../src/tokenizer/cache/cached-tokenizer.ts";
import { openTokenizer, type TokenizerHandle } from "../../src/tokenizer/load.ts";

declare const self: Worker;

export type CacheTask =
  | {
      readonly type: "encode";
      readonly handle: TokenizerHandle;
      readonly memory: SharedArrayBuffer;
      /** Each text is the beginning of the next; one in `texts.length` of the calls asks for each. */
      readonly texts: readonly string[];
      readonly ids: readonly Uint32Array[];
      readonly calls: number;
      readonly seed: number;
    }
  | { readonly type: "records"; readonly memory: SharedArrayBuffer; readonly calls: number; readonly seed: number };

export interface CacheReport {
  readonly wrong: number;
  readonly hits: number;
  readonly puts: number;
}

function chooser(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function encode({ handle, memory, texts, ids, calls, seed }: CacheTask & { type: "encode" }): CacheReport {
  const cached = cachedTokenizer(openTokenizer(handle), memory, { verifyShare: 0 });
  const choose = chooser(seed);
  let wrong = 0;
  for (let i = 0; i < calls; i++) {
    const which = choose(texts.length);
    const got = cached.encode(texts[which]!);
    const right = ids[which]!;
    if (got.length !== right.length || got.some((id, k) => id !== right[k])) wrong++;
  }
  return { wrong, hits: 0, puts: 0 };
}

/** Number `n`'s text and ids tell each other's number in every word, so that any mixture shows. */
const LENGTH = (n: number): number => 64 + (n % 61) * 8;
export function recordOf(n: number): { text: Uint8Array; ids: Uint32Array } {
  const text = new Uint8Array(LENGTH(n));
  new Uint32Array(text.buffer).fill(n);
  return { text, ids: new Uint32Array(20 + (n % 47)).fill(n) };
}

/** Nothing but reading and writing records, in a ring that turns all the time. */
function records({ memory, calls, seed }: CacheTask & { type: "records" }): CacheReport {
  const board = openCacheBoard(memory);
  const choose = chooser(seed);
  let [wrong, hits, puts] = [0, 0, 0];
  for (let i = 0; i < calls; i++) {
    const n = choose(400);
    const { text, ids } = recordOf(n);
    const hash = Bun.hash.xxHash3(text, board.seed);
    const found = board.find(Level.l0, hash, text.length);
    const content = found && board.contentOf(found);
    if (found && content && Buffer.from(text.buffer).equals(content.text)) {
      const copy = content.ids.slice();
      if (board.lives(found)) {
        hits++;
        if (copy.length !== ids.length || copy.some((id) => id !== n)) wrong++;
        continue;
      }
    }
    board.put(Level.l0, hash, board.append(text, ids), text.length, ids.length);
    puts++;
  }
  return { wrong, hits, puts };
}

self.onmessage = ({ data }: MessageEvent<CacheTask>) => {
  postMessage(data.type === "encode" ? encode(data) : records(data));
};
