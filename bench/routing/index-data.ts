/** Prompts of 8192 tokens and who holds how much of them, as ids and as text. */
import type { PrefixIndex } from "../../src/routing/policy.ts";
import type { PrefixCache, PrefixWriter } from "../../src/threads/prefix-types.ts";
import { Random } from "../loadgen/random.ts";
import type { RadixTree } from "./radix.ts";

export const TOKENS = 8192;
export const BLOCK = 16;
export const BLOCKS = TOKENS / BLOCK;
export const WORKERS = 64;
/** Prompts that begin alike, and how far: a quarter of their tokens. */
const GROUPS = 64;
const ALIKE = TOKENS / 4;
const PER_GROUP = 42;
/** Workers that hold a prompt at most: one all of it, the others some of what is behind the common beginning. */
const MOST_HOLDERS = 8;
const VOCABULARY = 150_000;
export const MODEL = "model";

export interface Prompt {
  readonly ids: Uint32Array;
  readonly text: string;
}

export interface Held extends Prompt {
  readonly holders: readonly { readonly worker: number; readonly blocks: number }[];
}

export const KINDS = ["all of it", "some of it", "its beginning", "nothing"] as const;
export type Kind = (typeof KINDS)[number];

export function routingData(seed: number) {
  const random = new Random(seed);
  const below = (n: number) => random.below(n);
  const words = Array.from({ length: VOCABULARY }, () => {
    const letters = Array.from({ length: 1 + below(6) }, () => String.fromCharCode(97 + below(26)));
    return ` ${letters.join("")}`;
  });
  const fresh = (count: number) => new Uint32Array(count).map(() => below(VOCABULARY));
  const textOf = (ids: Uint32Array): string => {
    let text = "";
    for (const id of ids) text += words[id]!;
    return Buffer.from(text, "latin1").toString("latin1"); // one flat string, as one that was received
  };
  const joined = (...parts: readonly Uint32Array[]) => {
    const ids = new Uint32Array(TOKENS);
    let at = 0;
    for (const part of parts) {
      ids.set(part, at);
      at += part.length;
    }
    return ids;
  };

  const held: Held[] = [];
  for (let group = 0; group < GROUPS; group++) {
    const beginning = fresh(ALIKE);
    for (let i = 0; i < PER_GROUP; i++) {
      const ids = joined(beginning, fresh(TOKENS - ALIKE));
      const holders = Array.from({ length: 1 + below(MOST_HOLDERS) }, (_, n) => ({
        worker: below(WORKERS),
        blocks: n === 0 ? BLOCKS : ALIKE / BLOCK + below(BLOCKS - ALIKE / BLOCK),
      }));
      held.push({ ids, text: textOf(ids), holders });
    }
  }

  return {
    held,
    blocks: GROUPS * (ALIKE / BLOCK) + held.length * ((TOKENS - ALIKE) / BLOCK),
    fill(index: PrefixIndex, writer: PrefixWriter, tree: RadixTree): void {
      const root = index.root(MODEL, BLOCK);
      const caches = Array.from({ length: WORKERS }, (_, worker) => writer.cache(worker));
      for (const { ids, text, holders } of held) {
        const { keys } = index.chain(root, ids, BLOCK);
        for (const { worker, blocks } of holders) {
          tell(caches[worker]!, keys, blocks);
          tree.insert(blocks === BLOCKS ? text : textOf(ids.subarray(0, blocks * BLOCK)), worker, 0);
        }
      }
    },
    /** A prompt that nobody sent yet, or that was sent before. */
    ask(kind: Kind): Prompt {
      const { ids } = held[below(held.length)]!;
      const known = {
        "all of it": TOKENS,
        "some of it": ALIKE + below(TOKENS - ALIKE),
        "its beginning": ALIKE,
        nothing: 0,
      };
      const asked = joined(ids.subarray(0, known[kind]), fresh(TOKENS - known[kind]));
      return { ids: asked, text: textOf(asked) };
    },
  };
}

/** A cache has stored the first blocks of a chain; where it names them by hashes, these are the keys. */
export function tell(cache: PrefixCache, keys: Int32Array, blocks: number, hasHashes = false): void {
  let position = -1;
  for (let from = 0; from < blocks; from += cache.mostTold) {
    const count = Math.min(cache.mostTold, blocks - from);
    cache.keys.set(keys.subarray(from * 2, (from + count) * 2));
    position = cache.stored(count, position, hasHashes ? keys : undefined, from);
  }
}
