/**
 * The memory of a tokenizer cache, shared by all threads. This module owns its layout; nobody else computes an offset.
 *
 * Layout: a header, the starts, the slots of L0, the slots of L1, the arena. The arena is a ring of records, each a text and its ids; the newest
 * take the place of the oldest. A slot says that a text (L0) or the beginning of one (L1) lies in a record, so that all beginnings
 * of a text share one copy. Slots stand in groups; where a group is full, the one of the oldest record gives way.
 *
 * Nobody locks, so that no thread waits for one that was ended. A writer claims room in the ring with one compare-and-swap, which
 * ends the life of what lay there, and writes then. A reader looks whether a record lives before and after it has read it. Two
 * writers may meet in a slot, whose words are then of both: its tag tells. A writer that was held up for a whole turn of the ring
 * spoils another's record: its check tells, a hash of the ids with the record's position, which is looked at after they were read.
 */
import { adviseHugePages, adviseSmallPages } from "../kernel/huge-pages.ts";
import type { Hash } from "./hash.ts";

/** Whole texts, and beginnings of texts that end at a cut. */
export const Level = { l0: 0, l1: 1 } as const;
export type LevelCode = (typeof Level)[keyof typeof Level];

/** Counters of a level. */
export const Count = { hits: 0, misses: 1, insertions: 2, mismatches: 3, evictions: 4 } as const;
export type CountCode = (typeof Count)[keyof typeof Count];

export interface TokenizerCacheSettings {
  /** Are whole texts kept? */
  readonly l0: boolean;
  /** Are beginnings of texts known? */
  readonly l1: boolean;
  /** Most whole texts that are known at a time. */
  readonly l0Entries: number;
  /** Bytes for texts and ids, which both levels share; slots come on top: 16 for each whole text, and a 128th of this. */
  readonly bytes: number;
}

/** What a slot tells of a text: its bytes, its ids, and the position of its record in the ring. */
export interface Found {
  readonly at: number;
  readonly length: number;
  readonly count: number;
}

/** Text and ids of what was found, as views in which others may be writing: use them, then ask `lives`. */
export interface Content {
  readonly text: Uint8Array;
  readonly ids: Uint32Array;
}

export interface CacheBoard {
  /** Is a level on? */
  isOn(level: LevelCode): boolean;
  /** Switches both levels off for good. */
  switchOff(): void;
  count(level: LevelCode, what: CountCode, by?: number): void;
  read(level: LevelCode, what: CountCode): number;
  /** Start of the hashes of texts, secret, so that nobody can choose texts that meet. */
  readonly seed: bigint;
  /** Most bytes of a text. */
  readonly longest: number;
  /** Was this hash noted, of a text or of how texts begin? Of so many that others have taken their places it may have forgotten. */
  knows(hash: Hash): boolean;
  note(hash: Hash): void;
  /** Something that had come before came again: that pays for storing texts of which nothing is known. */
  earn(): void;
  /** Takes one such text from what was earned; false if nothing is left. */
  spend(): boolean;
  /** The text of `length` bytes with this hash. `asText`: special tokens in it are plain text. */
  find(level: LevelCode, hash: Hash, length: number, asText?: boolean): Found | undefined;
  contentOf(found: Found): Content | undefined;
  /** Has no newer record taken the place of the one at this position? */
  isThere(at: number): boolean;
  /** Was all of its record untouched up to now, but for its text, which has to be compared? Looks at all of its ids. */
  lives(found: Found): boolean;
  /** Stores a text and its ids; gives the record's position, -1 if it is too large. */
  append(text: Uint8Array, ids: Uint32Array): number;
  /** Makes a text known that is the beginning of the record at `at`. True if it was not known before. */
  put(level: LevelCode, hash: Hash, at: number, length: number, count: number, asText?: boolean): boolean;
  /** Texts that are known now; looks at every slot. */
  entries(level: LevelCode): number;
  /** Bytes that `entries` texts take: their slots, and for the first level that is there all of the arena that was ever used. */
  bytes(level: LevelCode, entries: number): number;
}

// The header: 64-bit words (counters as halves, which are added to faster), then 32-bit ones.
const SEED = 0;
const COUNTS = 2; // 8 words a level
const HEAD = 36; // where the next record goes
const FILLED = 37; // units of the arena that were ever used
const ENABLED = 38; // a word a level
const GROUPS = 40; // a word a level
const WAYS = 42; // a word a level
const UNITS = 44; // of the arena
const CREDIT = 45; // texts that may be stored of which nothing is known
const HEADER_BYTES = 192;

/**
 * What a text saves that comes again pays for storing so many: of 8,000 tokens 10 to 30. The most credit is also that at the start, for
 * texts that take a while to come again.
 */
const EARNED = 16;
const MOST_CREDIT = 1024;

/** Places for hashes that are noted, a word each; a power of two. */
const STARTS = 1 << 14;

// A slot, in 32-bit words. The tag is half of the hash, mixed with the other words; the hash's other half chooses the group.
const TAG = 0;
const AT = 1;
const LENGTH = 2; // twice the bytes of the text, and 1 if special tokens in it are text; 0: empty
const IDS = 3;
const SLOT = 4;
const SLOT_BYTES = SLOT * 4;
/** Two cache lines, of which the second is seldom looked at. */
const MOST_WAYS = 8;

// A record: 32-bit words, then ids, then the text.
const CHECK = 0; // two words
const COUNT = 2;
const TEXT = 3;
const RECORD_WORDS = 4;

/** Records begin at multiples of this many bytes. */
const UNIT = 8;
/**
 * A text has one cut in 3 kB at most, and its ids take about as much room as its bytes: so most slots stay free, and few groups are
 * ever full.
 */
const ARENA_PER_L1_SLOT = 2048;
/** A record takes this part of the arena at most. */
const LARGEST_PART = 4;

/** Makes the memory of one model's cache. Pages that were never written to take no room. */
export function createTokenizerCache({ l0, l1, l0Entries, bytes }: TokenizerCacheSettings): SharedArrayBuffer {
  const units = Math.floor(bytes / UNIT);
  const slots = [l0 ? l0Entries : 0, l1 ? Math.ceil(bytes / ARENA_PER_L1_SLOT) : 0];
  const ways = slots.map((n) => Math.min(n, MOST_WAYS));
  const groups = slots.map((n, level) => (n === 0 ? 0 : Math.floor(n / ways[level]!)));
  const fixed = HEADER_BYTES + STARTS * 4;
  const before = groups.reduce((sum, n, level) => sum + n * ways[level]! * SLOT_BYTES, fixed);
  const memory = new SharedArrayBuffer(before + units * UNIT);
  adviseSmallPages(memory, 0, before);
  adviseHugePages(memory, before, memory.byteLength);
  new Uint8Array(memory).set(crypto.getRandomValues(new Uint8Array(8)), SEED * 8);
  const words = new Int32Array(memory, 0, HEADER_BYTES / 4);
  for (const level of Object.values(Level)) {
    words[ENABLED + level] = groups[level]! > 0 && units > 0 ? 1 : 0;
    words[GROUPS + level] = groups[level]!;
    words[WAYS + level] = ways[level]!;
  }
  words[UNITS] = units;
  words[CREDIT] = MOST_CREDIT;
  return memory;
}

/** The cache that another thread made. */
export function openCacheBoard(memory: SharedArrayBuffer): CacheBoard {
  const words = new Int32Array(memory);
  const all = new Uint8Array(memory);
  const seed = new BigUint64Array(memory, SEED * 8, 1)[0]!;
  const units = words[UNITS]!;
  const groups = [words[GROUPS]!, words[GROUPS + 1]!];
  const groupWords = [words[WAYS]! * SLOT, words[WAYS + 1]! * SLOT];
  const startsAt = HEADER_BYTES / 4;
  const slotsAt = [startsAt + STARTS, startsAt + STARTS + groups[0]! * groupWords[0]!];
  /** First word of the arena. */
  const arena = slotsAt[1]! + groups[1]! * groupWords[1]!;
  /** Positions are units, counted on through many turns of the ring, so that old ones are told from new ones. */
  const positions = units === 0 ? 1 : units * Math.floor(2 ** 32 / units);
  const largest = (units * UNIT) / LARGEST_PART;
  /** The level that the arena is counted for. */
  const owner = groups[Level.l0] === 0 ? Level.l1 : Level.l0;

  const half = new Int32Array(2);
  const whole = new DataView(half.buffer);
  /** Leaves the halves of a hash in `half`. */
  function halve(hash: Hash): void {
    if (typeof hash === "bigint") whole.setBigUint64(0, hash, true);
    else {
      half[0] = hash.low;
      half[1] = hash.high;
    }
  }

  /** Units that were claimed since a record's start: from 1 to `units` while it lives. */
  function age(at: number, head: number): number {
    const passed = (head >>> 0) - at;
    return passed < 0 ? passed + positions : passed;
  }
  function ageOf(slot: number, head: number): number {
    const old = words[slot + LENGTH] === 0 ? positions : age(words[slot + AT]! >>> 0, head);
    return old > 0 && old <= units ? old : positions;
  }
  /** First word of a record. */
  const addressOf = (at: number): number => arena + (at % units) * (UNIT / 4);

  /** The group of a hash, whose halves are left in `half`. */
  function groupOf(level: LevelCode, hash: Hash): number {
    halve(hash);
    return slotsAt[level]! + ((half[1]! >>> 0) % groups[level]!) * groupWords[level]!;
  }
  const isOf = (slot: number, length: number): boolean =>
    words[slot + LENGTH] === length &&
    words[slot + TAG] === tag(half[0]!, words[slot + AT]!, length, words[slot + IDS]!);

  function knows(hash: Hash): boolean {
    halve(hash);
    return words[startsAt + (half[1]! & (STARTS - 1))] === half[0];
  }
  function note(hash: Hash): void {
    halve(hash);
    words[startsAt + (half[1]! & (STARTS - 1))] = half[0]!;
  }

  function find(level: LevelCode, hash: Hash, length: number, asText = false): Found | undefined {
    const group = groupOf(level, hash);
    const code = lengthCode(length, asText);
    for (let slot = group; slot < group + groupWords[level]!; slot += SLOT) {
      if (words[slot + LENGTH] === 0) return undefined;
      if (words[slot + LENGTH] !== code) continue;
      const [at, count] = [words[slot + AT]!, words[slot + IDS]!];
      if (words[slot + TAG] !== tag(half[0]!, at, code, count)) continue;
      if (age(at >>> 0, Atomics.load(words, HEAD)) > units) return undefined;
      return { at: at >>> 0, length, count };
    }
    return undefined;
  }

  function contentOf({ at, length, count }: Found): Content | undefined {
    const record = addressOf(at);
    const [ids, text] = [words[record + COUNT]!, words[record + TEXT]!];
    if (ids < count || text < length || recordBytes(text, ids) > largest) return undefined;
    const idsAt = (record + RECORD_WORDS) * 4;
    const textAt = idsAt + ids * 4;
    if (textAt + text > memory.byteLength) return undefined;
    return { text: all.subarray(textAt, textAt + length), ids: new Uint32Array(memory, idsAt, count) };
  }

  /** Are the ids those that were written with this position? */
  function isWhole(at: number): boolean {
    const record = addressOf(at);
    const ids = words[record + COUNT]!;
    const idsAt = (record + RECORD_WORDS) * 4;
    if (ids < 0 || idsAt + ids * 4 > memory.byteLength) return false;
    halve(checkOf(new Uint32Array(memory, idsAt, ids), seed));
    return (half[0]! ^ at) === words[record + CHECK] && half[1] === words[record + CHECK + 1];
  }

  /** Room for a record of so many units, in one piece. */
  function claim(size: number): number {
    for (;;) {
      const head = Atomics.load(words, HEAD);
      const before = head >>> 0;
      const left = units - (before % units);
      const start = size > left ? (before + left) % positions : before;
      if (Atomics.compareExchange(words, HEAD, head, ((start + size) % positions) | 0) !== head) continue;
      const end = (start % units) + size;
      if (end > words[FILLED]!) words[FILLED] = end;
      return start;
    }
  }

  function append(text: Uint8Array, ids: Uint32Array): number {
    const size = recordBytes(text.length, ids.length);
    if (size > largest) return -1;
    const at = claim(Math.ceil(size / UNIT));
    const record = addressOf(at);
    halve(checkOf(ids, seed));
    words[record + CHECK] = half[0]! ^ at;
    words[record + CHECK + 1] = half[1]!;
    words[record + COUNT] = ids.length;
    words[record + TEXT] = text.length;
    words.set(ids, record + RECORD_WORDS);
    all.set(text, (record + RECORD_WORDS + ids.length) * 4);
    return at;
  }

  function put(level: LevelCode, hash: Hash, at: number, length: number, count: number, asText = false): boolean {
    const group = groupOf(level, hash);
    const code = lengthCode(length, asText);
    const head = Atomics.load(words, HEAD);
    let choice = group;
    let oldest = 0;
    let isNew = true;
    for (let slot = group; slot < group + groupWords[level]!; slot += SLOT) {
      const isEmpty = words[slot + LENGTH] === 0;
      const old = isEmpty ? positions : ageOf(slot, head);
      if (!isEmpty && isOf(slot, code)) {
        choice = slot;
        isNew = old > units;
        break;
      }
      if (old > oldest) {
        oldest = old;
        choice = slot;
      }
      if (isEmpty) break; // groups fill in order
    }
    words[choice + TAG] = tag(half[0]!, at | 0, code, count);
    words[choice + AT] = at | 0;
    words[choice + LENGTH] = code;
    words[choice + IDS] = count;
    return isNew;
  }

  function entries(level: LevelCode): number {
    const head = Atomics.load(words, HEAD);
    const end = slotsAt[level]! + groups[level]! * groupWords[level]!;
    let sum = 0;
    for (let slot = slotsAt[level]!; slot < end; slot += SLOT) if (ageOf(slot, head) <= units) sum++;
    return sum;
  }

  return {
    isOn: (level) => Atomics.load(words, ENABLED + level) === 1,
    switchOff() {
      for (const level of Object.values(Level)) Atomics.store(words, ENABLED + level, 0);
    },
    count(level, what, by = 1) {
      const low = counterOf(level, what);
      if ((Atomics.add(words, low, by) >>> 0) + by >= 2 ** 32) Atomics.add(words, low + 1, 1);
    },
    read(level, what) {
      const low = counterOf(level, what);
      return Atomics.load(words, low + 1) * 2 ** 32 + (Atomics.load(words, low) >>> 0);
    },
    seed,
    longest: Math.floor(largest),
    knows,
    note,
    // threads that meet here lose a little of it
    earn() {
      words[CREDIT] = Math.min(words[CREDIT]! + EARNED, MOST_CREDIT);
    },
    spend() {
      const left = words[CREDIT]!;
      if (left <= 0) return false;
      words[CREDIT] = left - 1;
      return true;
    },
    find,
    contentOf,
    isThere: (at) => age(at, Atomics.load(words, HEAD)) <= units,
    // A write, so that no read before it is put off on any processor.
    lives: ({ at }) => isWhole(at) && age(at, Atomics.add(words, HEAD, 0)) <= units,
    append,
    put,
    entries,
    bytes: (level, entries) => entries * SLOT_BYTES + (level === owner ? words[FILLED]! * UNIT : 0),
  };
}

/** First of a counter's two words. */
const counterOf = (level: LevelCode, what: CountCode): number => (COUNTS + level * 8 + what) * 2;
const recordBytes = (text: number, ids: number): number => RECORD_WORDS * 4 + ids * 4 + text;
const lengthCode = (length: number, asText: boolean): number => length * 2 + (asText ? 1 : 0);
const checkOf = (ids: Uint32Array, seed: bigint): bigint => Bun.hash.xxHash3(ids, seed);

function tag(half: number, at: number, length: number, count: number): number {
  let mixed = Math.imul(at ^ 0x5bd1e995, 0x9e3779b1);
  mixed = Math.imul((mixed ^ (mixed >>> 15)) + length, 0x85ebca6b);
  mixed = Math.imul((mixed ^ (mixed >>> 13)) + count, 0xc2b2ae35);
  return half ^ mixed ^ (mixed >>> 16);
}
