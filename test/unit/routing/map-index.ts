/** The prefix index and the sticky table by maps, for one thread and without limits: to compare the real ones with, and for models. */
import type { MediaSpan } from "../../../src/routing/ask.ts";
import type { PrefixIndex } from "../../../src/routing/policy.ts";
import type { ChainKeys, PrefixMatch, PrefixSpan, RootKey, StickyTable } from "../../../src/threads/prefix-types.ts";

const mixed = (hash: number, word: number): number => {
  let h = Math.imul(hash ^ word, 0x9e3779b1);
  h = Math.imul(h ^ (h >>> 15), 0x85ebca6b);
  return h ^ (h >>> 13);
};

const text = (hash: number, value: string): number => {
  let h = hash;
  for (const unit of `${value}\0`) h = mixed(h, unit.codePointAt(0) ?? 0);
  return h;
};

/** A key as one number: 52 bits of its 64. */
export const keyOf = (hi: number, lo: number): number => (hi >>> 0) * 0x10_0000 + (lo & 0xf_ffff);

/** Members of a block, each with the time until which that is believed. */
type Holders = Map<number, Map<number, number>>;

export class MapIndex implements PrefixIndex {
  readonly exact: Holders = new Map();
  readonly guessed: Holders = new Map();

  constructor(private readonly promiseMs = Number.POSITIVE_INFINITY) {}

  root(model: string, blockSize: number, lora = "", cacheSalt = ""): RootKey {
    const seed = (start: number) => text(text(text(mixed(start, blockSize), model), lora), cacheSalt);
    return [seed(1), seed(2)];
  }

  chain([rootHi, rootLo]: RootKey, ids: Uint32Array, blockSize: number, media: readonly MediaSpan[] = []): ChainKeys {
    const count = Math.floor(ids.length / blockSize);
    const keys = new Int32Array(2 * count);
    let hi = rootHi;
    let lo = rootLo;
    for (let block = 0; block < count; block++) {
      const from = block * blockSize;
      for (let i = from; i < from + blockSize; i++) {
        hi = mixed(hi, ids[i]!);
        lo = mixed(lo, ids[i]! + 1);
      }
      for (const span of media) {
        if (span.start >= from + blockSize || span.end <= from) continue;
        hi = mixed(hi, span.hi);
        lo = mixed(lo, span.lo);
      }
      keys[2 * block] = hi;
      keys[2 * block + 1] = lo;
    }
    return { keys, count, blockSize };
  }

  match({ keys, count }: ChainKeys, now = 0): PrefixMatch {
    const at = (block: number) => keyOf(keys[2 * block]!, keys[2 * block + 1]!);
    const isHeld = (known: Holders, block: number, member: number) =>
      (known.get(at(block))?.get(member) ?? Number.NEGATIVE_INFINITY) >= now;
    const depthIn = (known: Holders, member: number) => {
      let depth = 0;
      while (depth < count && isHeld(known, depth, member)) depth++;
      return depth;
    };
    const held = (known: Holders, block: number) =>
      [...(known.get(at(block))?.keys() ?? [])].filter((member) => isHeld(known, block, member)).sort((a, b) => a - b);
    const spans = (): PrefixSpan[] => {
      const found: PrefixSpan[] = [];
      for (let block = 0; block < count; block++) {
        const exact = held(this.exact, block);
        const guessed = held(this.guessed, block);
        if (exact.length + guessed.length === 0) break;
        const last = found.at(-1);
        if (last !== undefined && `${last.exact}|${last.guessed}` === `${exact}|${guessed}`) found.pop();
        found.push({ end: block + 1, exact, guessed });
      }
      return found;
    };
    return {
      depth: (member) => Math.max(depthIn(this.exact, member), depthIn(this.guessed, member)),
      isExact: (member) => depthIn(this.exact, member) >= depthIn(this.guessed, member),
      spans,
    };
  }

  promise({ keys, count }: ChainKeys, from: number, member: number, now: number): void {
    const until = now + this.promiseMs;
    for (let i = from; i < count; i++) put(this.guessed, keyOf(keys[2 * i]!, keys[2 * i + 1]!), member, until);
  }

  addAll({ keys, count }: ChainKeys, member: number): void {
    for (let i = 0; i < count; i++) this.add(keyOf(keys[2 * i]!, keys[2 * i + 1]!), member);
  }

  add(key: number, member: number): void {
    put(this.exact, key, member, Number.POSITIVE_INFINITY);
  }

  drop(key: number, member: number): void {
    this.exact.get(key)?.delete(member);
  }
}

function put(known: Holders, key: number, member: number, until: number): void {
  const holders = known.get(key);
  if (holders === undefined) known.set(key, new Map([[member, until]]));
  else holders.set(member, until);
}

export class MapSticky implements StickyTable {
  private readonly keys = new Map<string, { members: number[]; usedAt: number }>();
  private readonly turns = new Map<string, number>();
  private readonly counts = new Map<string, Uint32Array>();

  find(key: string, now: number, maxIdleMs: number): readonly number[] {
    const found = this.look(key, now, maxIdleMs);
    const entry = this.keys.get(key);
    if (found.length > 0 && entry !== undefined) entry.usedAt = now;
    return found;
  }

  look(key: string, now: number, maxIdleMs: number): readonly number[] {
    const entry = this.keys.get(key);
    return entry === undefined || now - entry.usedAt > maxIdleMs ? [] : entry.members;
  }

  assign(key: string, member: number, now: number): void {
    const others = (this.keys.get(key)?.members ?? []).filter((other) => other !== member);
    this.keys.set(key, { members: [member, ...others].slice(0, 2), usedAt: now });
  }

  count(member: number): number {
    return [...this.keys.values()].filter(({ members }) => members.includes(member)).length;
  }

  size(): number {
    return this.keys.size;
  }

  next(name: string): number {
    const turn = this.upcoming(name);
    this.turns.set(name, turn + 1);
    return turn;
  }

  upcoming(name: string): number {
    return this.turns.get(name) ?? 0;
  }

  countLength(name: string, tokens: number): void {
    this.lengths(name)[Math.floor(4 * Math.log2(Math.max(1, tokens)))]!++;
  }

  lengths(name: string): Uint32Array {
    let counts = this.counts.get(name);
    if (counts === undefined) this.counts.set(name, (counts = new Uint32Array(128)));
    return counts;
  }
}
