import { Family, Flag, HEADER_WORDS, Word } from "./image/header.ts";
import { growBy, IMAGE_AT, type Kernel } from "./kernel/kernel.ts";
import { eachPart, isLong, maySplit } from "./long-text.ts";
import { rustNfc } from "./nfc.ts";
import type { EncodedRest, TextBuffer } from "./tokenizer.ts";

/** What the kernel does with added tokens in a text: not look for them, find all, find all but special ones. */
export const Split = { none: 0, all: 1, notSpecial: 2 } as const;

/** Bytes that the kernel may read past a text. */
const SLACK = 128;
const SMALLEST_TEXT = 65536;

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
  let textAt = 0;
  let textSize = 0;
  let outAt = 0;
  let text = new Uint8Array(0);
  let ids = new Uint32Array(0);
  /** Bytes of the text that was written last. */
  let length = 0;
  /** Room for a text of `size` bytes and its ids. */
  function reserve(size: number): void {
    if (size <= textSize) return;
    let want = Math.max(SMALLEST_TEXT, textSize);
    while (want < size) want *= 2;
    textAt = growBy(memory, want * 5 + SLACK * 3) + SLACK; // the kernel may write before a text
    textSize = want;
    outAt = (textAt + want + SLACK + 63) & ~63;
    text = new Uint8Array(memory.buffer, textAt, want);
    ids = new Uint32Array(memory.buffer, outAt, want);
  }
  // Before any other view: memory that grows gets a new buffer, and old views would keep the old one counted as well.
  reserve(SMALLEST_TEXT);
  const image = imageViews(memory);
  const { header, offsets, bytes, flags } = image;
  const nfc = header[Word.nfc] === 1;

  /** Writes the text to the kernel's buffer. */
  function write(s: string): Uint8Array {
    if (s.length * 3 > textSize) reserve(s.length < SMALLEST_TEXT ? s.length * 3 : Buffer.byteLength(s));
    length = utf8.encodeInto(s, text).written;
    return text.subarray(0, length);
  }
  /** Ids of the written bytes [from, to), as a copy. */
  function run(from: number, to: number, split: number): Uint32Array {
    const count = kernel.encode(textAt + from, textAt + to, outAt, split);
    const out = new Uint32Array(count);
    out.set(ids.subarray(0, count));
    return out;
  }
  function runText(s: string, split: number): Uint32Array {
    write(s);
    return run(0, length, split);
  }
  /** Would NFC change the written bytes? */
  function isDenormal(from: number, to: number): boolean {
    if (!nfc || kernel.normal(textAt + from, textAt + to)) return false;
    const s = decoder.decode(text.slice(from, to));
    return rustNfc(s) !== s;
  }
  /** The Rust library normalizes each section between added tokens by itself. Overwrites what was written. */
  function encodeDenormal(from: number, to: number, split: number): Uint32Array {
    const copy = text.slice(from, to);
    const [start, end] = [textAt + from, textAt + to];
    const parts: (string | number)[] = [];
    let done = 0;
    for (;;) {
      const at = kernel.findAdded(start + done, end, split) - start;
      if (start + at >= end) break;
      parts.push(decoder.decode(copy.subarray(done, at)), kernel.addedId());
      done = kernel.addedEnd() - start;
    }
    parts.push(decoder.decode(copy.subarray(done)));
    return concatenated(
      parts.map((p) => (typeof p === "number" ? Uint32Array.of(p) : runText(rustNfc(p), Split.none))),
    );
  }
  function encodePart(s: string, split: number): Uint32Array {
    write(s);
    return nfc && length !== s.length && isDenormal(0, length)
      ? encodeDenormal(0, length, split)
      : run(0, length, split);
  }

  const all = new Uint8Array(memory.buffer);
  const asciiJoins = header[Word.family] === Family.gemma ? IMAGE_AT + header[Word.asciiJoins]! : undefined;
  const joins = (a: number, b: number): boolean => asciiJoins !== undefined && all[asciiJoins + ((a << 7) | b)] !== 0;
  let splits: boolean | undefined;
  function encode(s: string, split: number): Uint32Array {
    if (!isLong(s)) return encodePart(s, split);
    splits ??= !header[Word.prefix] && !header[Word.rstrip] && maySplit(addedTexts(), joins);
    if (!splits) return encodePart(s, split);
    const parts: Uint32Array[] = [];
    eachPart(s, (part) => parts.push(encodePart(part, split)));
    return concatenated(parts);
  }
  function* addedTexts(): Generator<string> {
    for (let id = 0; id < flags.length; id++) {
      if (flags[id]! & Flag.added) yield decoder.decode(bytes.slice(offsets[id]!, offsets[id + 1]!));
    }
  }

  function nextCut(from: number): number {
    const end = textAt + length;
    let at = textAt + from;
    while (at < end) {
      at = kernel.findAdded(at, end, Split.all);
      if (at >= end) break;
      at = kernel.addedEnd();
      if (flags[kernel.addedId()]! & Flag.cut) return at - textAt;
    }
    return -1;
  }
  function encodeFrom(from: number): EncodedRest {
    const cuts: number[] = [];
    let count = 0;
    for (let at = from; at < length; ) {
      const cut = nextCut(at);
      const to = cut < 0 ? length : cut;
      if (isDenormal(at, to)) return encodeRest(at, ids.slice(0, count), cuts);
      count += kernel.encode(textAt + at, textAt + to, outAt + count * 4, Split.all);
      if (cut >= 0) cuts.push(cut, count);
      at = to;
    }
    return { ids: ids.subarray(0, count), cuts: Uint32Array.from(cuts) };
  }
  /** Goes on from `at` where NFC changes a section: what is written does not outlive that, so that all is copied first. */
  function encodeRest(at: number, done: Uint32Array, cuts: number[]): EncodedRest {
    const ends: number[] = [];
    for (let end = at; end < length; ) {
      const cut = nextCut(end);
      end = cut < 0 ? length : cut;
      ends.push(cut);
    }
    const copy = text.slice(0, length);
    const parts = [done];
    let count = done.length;
    let start = at;
    for (const cut of ends) {
      const end = cut < 0 ? copy.length : cut;
      const part = encodePart(decoder.decode(copy.subarray(start, end)), Split.all);
      parts.push(part);
      count += part.length;
      if (cut >= 0) cuts.push(cut, count);
      start = end;
    }
    text.set(copy); // the caller may still look at it
    length = copy.length;
    return { ids: concatenated(parts), cuts: Uint32Array.from(cuts) };
  }

  return {
    image,
    encode,
    encodeSoon: (s, split) => (isLong(s) ? undefined : encodePart(s, split)),
    buffer: flags.some((f) => f & Flag.cut)
      ? { write, nextCut, encodeFrom: (from) => (length > SOON_BYTES ? undefined : encodeFrom(from)) }
      : undefined,
  };
}

/** Bytes that are encoded in some 10 ms. */
const SOON_BYTES = 3 << 18;

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
