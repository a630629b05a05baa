import { Family, Flag, HEADER_WORDS, Word } from "./image/header.ts";
import { growBy, IMAGE_AT, type Kernel } from "./kernel/kernel.ts";
import { eachPart, isLong, maySplit } from "./long-text.ts";
import { hasLongRuns, rustNfc } from "./nfc.ts";
import type { EncodedRest, TextBuffer } from "./tokenizer.ts";

/** What the kernel does with added tokens in a text: not look for them, find all, find all but special ones. */
export const Split = { none: 0, all: 1, notSpecial: 2 } as const;
/** Added to that: only tokens that are looked for in raw text, or only those that are looked for in normalized text. */
const Phase = { raw: 4, normalized: 8 } as const;

/** Bytes that the kernel may read past a text. */
const SLACK = 128;
const SMALLEST_TEXT = 65536;
/** Cuts of one text that are told; those behind are not. */
const MOST_CUTS = 4096;
const NO_LIMIT = 0;
/** What an encoding may take in the serving thread, in the kernel's measure (about nanoseconds). */
const SOON = 10_000_000;
/** What each byte of a text takes in the same measure: whatever it holds, if it may have to be normalized, if it has to be. */
const BYTE_COST = 2;
const NFC_BYTE_COST = 12;
const DENORMAL_BYTE_COST = 25;
/** What an id takes at least, and how many may be written after a budget is used up. */
const ID_COST = 32;
const OVERRUN = 4096;
/** UTF-16 units above which long runs of marks are no work for the serving thread. */
const MOST_LONG_RUNS = 8192;

const utf8 = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Views of an image: bytes of token `i` are `bytes[offsets[i], offsets[i + 1])`, its `Flag` bits `flags[i]`. */
export interface ImageViews {
  readonly header: Uint32Array;
  readonly offsets: Uint32Array;
  readonly bytes: Uint8Array;
  readonly flags: Uint8Array;
}

export interface KernelEncoder {
  readonly image: ImageViews;
  encode(text: string, split: number): Uint32Array;
  /** Undefined if it would take long. */
  encodeSoon(text: string, split: number): Uint32Array | undefined;
  readonly buffer: TextBuffer | undefined;
}

/** Texts in, ids out, over an image in the kernel's memory, with buffers of its own there. */
export function kernelEncoder(kernel: Kernel, memory: WebAssembly.Memory): KernelEncoder {
  const cutsAt = growBy(memory, MOST_CUTS * 8 + 16);
  const cutPairs = new Uint32Array(memory.buffer, cutsAt, MOST_CUTS * 2);
  const hashesAt = cutsAt + MOST_CUTS * 8;
  const hashes = new Int32Array(memory.buffer, hashesAt, 4);
  let textAt = 0;
  let text = new Uint8Array(0);
  let idsAt = 0;
  let ids = new Uint32Array(0);
  /** Bytes of the text that was written last. */
  let length = 0;
  /** Is it ASCII? */
  let ascii = false;
  /** Counts what is written to the buffers. */
  let stamp = 0;
  /** Room for a text of `size` bytes. */
  function reserveText(size: number): void {
    if (size <= text.length) return;
    const room = roomFor(size);
    textAt = growBy(memory, room + SLACK * 2) + SLACK; // the kernel may write before a text
    text = new Uint8Array(memory.buffer, textAt, room);
  }
  /** Room for as many ids as a text of `size` bytes can have. */
  function reserveIds(size: number): void {
    if (size <= ids.length) return;
    const room = roomFor(size);
    idsAt = growBy(memory, room * 4 + SLACK);
    ids = new Uint32Array(memory.buffer, idsAt, room);
  }
  // Before any other view: memory that grows gets a new buffer, and old views would keep the old one counted as well.
  reserveText(SMALLEST_TEXT);
  reserveIds(SMALLEST_TEXT);
  const image = imageViews(memory);
  const { header, offsets, bytes, flags } = image;
  const nfc = header[Word.nfc] === 1;
  /** A sign before each section is an id more, or one for each of its three bytes; a section and the token before it have two bytes. */
  const idsOf = (size: number): number => (header[Word.prefix] ? Math.ceil(size * 2.5) + 3 : size);

  /** Writes the text to the kernel's buffer. */
  function write(s: string): Uint8Array {
    if (s.length * 3 > text.length) reserveText(s.length < SMALLEST_TEXT ? s.length * 3 : Buffer.byteLength(s));
    length = utf8.encodeInto(s, text).written;
    ascii = length === s.length;
    stamp++;
    kernel.forgetAhead();
    return text.subarray(0, length);
  }
  /** Ids of the written bytes from `from` on, as a view; undefined if the budget was too small. */
  function run(from: number, split: number, budget: number, cuts: number): Uint32Array | undefined {
    const most = budget === NO_LIMIT ? Number.POSITIVE_INFINITY : budget / ID_COST + OVERRUN;
    stamp++;
    reserveIds(Math.min(idsOf(length - from), most));
    const count = kernel.encode(textAt + from, textAt + length, idsAt, split, budget, cutsAt, cuts);
    return count < 0 ? undefined : ids.subarray(0, count);
  }
  /**
   * The same as `run` where NFC changes the text: the Rust library normalizes each section between added tokens by itself, and looks
   * for other added tokens there. Writes over the text. `addCut` gets the offset from `from` and the count of ids.
   */
  function runSections(from: number, split: number, budget: number, addCut: (at: number, count: number) => void) {
    const copy = text.slice(from, length);
    const [start, end] = [textAt + from, textAt + length];
    const sections: (string | number)[] = [];
    const ends: number[] = [];
    for (let done = 0; ; ) {
      const at = kernel.findAdded(start + done, end, split | Phase.raw) - start;
      sections.push(decoder.decode(copy.subarray(done, at)));
      ends.push(at);
      if (start + at >= end) break;
      sections.push(kernel.addedId());
      done = kernel.addedEnd() - start;
      ends.push(done);
    }
    const parts: Uint32Array[] = [];
    let left = budget;
    let count = 0;
    for (const [i, section] of sections.entries()) {
      let part: Uint32Array | undefined;
      if (typeof section === "number") part = Uint32Array.of(section);
      else {
        write(rustNfc(section));
        part = run(0, split | Phase.normalized, left, 0)?.slice();
        if (budget !== NO_LIMIT) left = kernel.budgetLeft();
      }
      if (part === undefined || (budget !== NO_LIMIT && left <= 0)) return undefined;
      parts.push(part);
      count += part.length;
      if (typeof section === "number" && flags[section]! & Flag.cut) addCut(ends[i]!, count);
    }
    return concatenated(parts);
  }
  /**
   * Ids of `s`, which was written and of which the bytes from `from` on count, as a view or a fresh array; undefined if the budget was
   * too small. `denormal` encodes what NFC changes.
   */
  function encodeWritten<T>(
    s: string | undefined,
    from: number,
    budget: number,
    normal: (budget: number) => T,
    denormal: (budget: number) => T,
  ): T | undefined {
    const size = length - from;
    let left = budget;
    /** Takes the cost of so many nanoseconds a byte off the budget; false if it is used up. */
    const pays = (cost: number): boolean => budget === NO_LIMIT || (left -= size * cost) > 0;
    if (!pays(BYTE_COST)) return undefined;
    if (nfc && !ascii && !kernel.normal(textAt + from, textAt + length)) {
      if (!pays(NFC_BYTE_COST)) return undefined;
      const rest = s ?? decoder.decode(text.slice(from, length));
      if (budget !== NO_LIMIT && rest.length > MOST_LONG_RUNS && hasLongRuns(rest)) return undefined;
      if (rustNfc(rest) !== rest) return pays(DENORMAL_BYTE_COST) ? denormal(left) : undefined;
    }
    return normal(left);
  }
  function encodePart(s: string, split: number, budget: number): Uint32Array | undefined {
    write(s);
    return encodeWritten(
      s,
      0,
      budget,
      (left) => run(0, split, left, 0),
      (left) => runSections(0, split, left, () => {}),
    );
  }

  const all = new Uint8Array(memory.buffer);
  const asciiJoins = header[Word.family] === Family.gemma ? IMAGE_AT + header[Word.asciiJoins]! : undefined;
  const joins = (a: number, b: number): boolean => asciiJoins !== undefined && all[asciiJoins + ((a << 7) | b)] !== 0;
  let splits: boolean | undefined;
  function encode(s: string, split: number): Uint32Array {
    const whole = (part: string): Uint32Array => owned(encodePart(part, split, NO_LIMIT)!);
    if (!isLong(s)) return whole(s);
    splits ??= !header[Word.prefix] && !header[Word.rstrip] && maySplit(addedTexts(), joins);
    if (!splits) return whole(s);
    const parts: Uint32Array[] = [];
    eachPart(s, (part) => parts.push(whole(part)));
    return concatenated(parts);
  }
  /** What is a view of the kernel's memory, as an array of its own. */
  const owned = (view: Uint32Array): Uint32Array => (view.buffer === ids.buffer ? new Uint32Array(view) : view);
  function* addedTexts(): Generator<string> {
    for (let id = 0; id < flags.length; id++) {
      if (flags[id]! & Flag.added) yield decoder.decode(bytes.slice(offsets[id]!, offsets[id + 1]!));
    }
  }
  function encodeSoon(s: string, split: number): Uint32Array | undefined {
    if (isLong(s)) return undefined;
    const found = encodePart(s, split, SOON);
    return found && owned(found);
  }

  function nextCut(from: number): number {
    const end = textAt + length;
    let at = textAt + from;
    while (at < end) {
      at = kernel.lookAhead(at, end);
      if (at >= end) break;
      at = kernel.addedEnd();
      if (flags[kernel.addedId()]! & Flag.cut) return at - textAt;
    }
    return -1;
  }
  function encodeFrom(from: number): EncodedRest | undefined {
    return encodeWritten(
      undefined,
      from,
      SOON,
      (left) => encodeNormal(from, left),
      (left) => encodeDenormal(from, left),
    );
  }
  function encodeNormal(from: number, budget: number): EncodedRest | undefined {
    const found = run(from, Split.all, budget, MOST_CUTS);
    if (found === undefined) return undefined;
    const cuts = cutPairs.subarray(0, kernel.cutsFound() * 2);
    if (from > 0) for (let i = 0; i < cuts.length; i += 2) cuts[i]! += from;
    return { ids: found, cuts };
  }
  function encodeDenormal(from: number, budget: number): EncodedRest | undefined {
    const copy = text.slice(0, length);
    const cuts: number[] = [];
    const found = runSections(from, Split.all, budget, (at, count) => {
      if (cuts.length < MOST_CUTS * 2) cuts.push(from + at, count);
    });
    text.set(copy); // the caller may still look at it
    length = copy.length;
    ascii = false;
    return found && { ids: found, cuts: Uint32Array.from(cuts) };
  }

  function digest(seed: bigint, first: number): Int32Array {
    kernel.digest(textAt, textAt + length, first, seed, hashesAt);
    return hashes;
  }

  const hasCuts = flags.some((f) => f & Flag.cut);
  return {
    image,
    encode,
    encodeSoon,
    buffer: hasCuts ? { write, nextCut, encodeFrom, digest, stamp: () => stamp } : undefined,
  };
}

/** Bytes to reserve for a text of `size` bytes. */
function roomFor(size: number): number {
  let room = SMALLEST_TEXT;
  while (room < size) room *= 2;
  return room;
}

function imageViews(memory: WebAssembly.Memory): ImageViews {
  const header = new Uint32Array(memory.buffer, IMAGE_AT, HEADER_WORDS);
  const count = header[Word.tokenCount]!;
  const offsets = new Uint32Array(memory.buffer, IMAGE_AT + header[Word.offsets]!, count + 1);
  return {
    header,
    offsets,
    bytes: new Uint8Array(memory.buffer, IMAGE_AT + header[Word.bytes]!, offsets[count]!),
    flags: new Uint8Array(memory.buffer, IMAGE_AT + header[Word.flags]!, count),
  };
}

export function concatenated(parts: readonly Uint32Array[]): Uint32Array {
  const out = new Uint32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
