import { Family, Flag, Word } from "./image/header.ts";
import { growBy, IMAGE_AT, instantiate } from "./kernel/kernel.ts";
import { eachPart, isLong, maySplit } from "./long-text.ts";
import { rustNfc } from "./nfc.ts";
import { type Tokenizer, TokenizerError } from "./tokenizer.ts";
import { strippedStart, type TokenTable, utf8Decoder } from "./utf8-decoder.ts";

/** Tables of a tokenizer in shared memory; can be sent to other threads. */
export interface KernelHandle {
  readonly kind: "kernel";
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
}

/** Per thread: 2^15 words of up to 16 bytes (32 bytes each) and 2^12 longer ones (256 bytes each), 2 MB once filled. */
const WORD_BITS = 15;
const LONG_BITS = 12;
const CACHE_BYTES = 2 ** WORD_BITS * 32 + 2 ** LONG_BITS * 256;
/** Bytes that the kernel may read past a text. */
const SLACK = 128;
const SMALLEST_TEXT = 65536;
/** Token texts kept per thread, replaced in place. */
const TEXTS = 1 << 14;
/** Looked-up token names kept per thread. */
const MAX_NAMES = 4096;

const Split = { none: 0, all: 1 } as const;
const utf8 = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const NOTHING = new Uint8Array(0);

/** A tokenizer over shared tables, for the thread that calls: it gets a word cache and buffers of its own (3.5 MB). */
export function openKernelTokenizer({ module, memory }: KernelHandle): Tokenizer {
  const kernel = instantiate(module, memory);
  kernel.init(IMAGE_AT, growBy(memory, CACHE_BYTES), WORD_BITS, LONG_BITS);
  let textAt = 0;
  let textSize = 0;
  let outAt = 0;
  let text = NOTHING;
  let ids = new Uint32Array(0);
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
  const header = new Uint32Array(memory.buffer, IMAGE_AT, 64);
  const vocabSize = header[Word.tokenCount]!;
  const nfc = header[Word.nfc] === 1;
  const offsets = new Uint32Array(memory.buffer, IMAGE_AT + header[Word.offsets]!, vocabSize + 1);
  const bytes = new Uint8Array(memory.buffer, IMAGE_AT + header[Word.bytes]!, offsets[vocabSize]!);
  const all = Buffer.from(memory.buffer);
  const flags = new Uint8Array(memory.buffer, IMAGE_AT + header[Word.flags]!, vocabSize);
  /** In bytes, of which a text has as many as UTF-16 units or more; found when it is first asked for. */
  let longest = 0;
  function longestToken(): number {
    if (longest === 0)
      for (let id = 0; id < vocabSize; id++) longest = Math.max(longest, offsets[id + 1]! - offsets[id]!);
    return nfc ? longest * 2 : longest; // NFC may make three units of text two bytes
  }
  /** Writes the text to the kernel's buffer; returns its length in bytes. */
  function write(s: string): number {
    if (s.length * 3 > textSize) reserve(s.length < SMALLEST_TEXT ? s.length * 3 : Buffer.byteLength(s));
    return utf8.encodeInto(s, text).written;
  }
  function run(n: number, split: number): Uint32Array {
    const count = kernel.encode(textAt, textAt + n, outAt, split);
    const out = new Uint32Array(count);
    out.set(ids.subarray(0, count));
    return out;
  }
  /** The Rust library normalizes each section between added tokens by itself. */
  function encodeDenormal(n: number): Uint32Array {
    const copy = text.slice(0, n);
    const parts: (string | number)[] = [];
    let from = 0;
    for (;;) {
      const at = kernel.findAdded(textAt + from, textAt + n, Split.all) - textAt;
      if (at >= n) break;
      parts.push(decoder.decode(copy.subarray(from, at)), kernel.addedId());
      from = kernel.addedEnd() - textAt;
    }
    parts.push(decoder.decode(copy.subarray(from)));
    const runs = parts.map((p) => (typeof p === "number" ? Uint32Array.of(p) : run(write(rustNfc(p)), Split.none)));
    return concatenated(runs);
  }
  function encodePart(s: string): Uint32Array {
    const n = write(s);
    const denormal = nfc && n !== s.length && !kernel.normal(textAt, textAt + n) && rustNfc(s) !== s;
    return denormal ? encodeDenormal(n) : run(n, Split.all);
  }
  const asciiJoins = header[Word.family] === Family.gemma ? IMAGE_AT + header[Word.asciiJoins]! : undefined;
  const joins = (a: number, b: number): boolean => asciiJoins !== undefined && all[asciiJoins + ((a << 7) | b)] !== 0;
  let splits: boolean | undefined;
  function encode(s: string): Uint32Array {
    if (!isLong(s)) return encodePart(s);
    splits ??= !header[Word.prefix] && !header[Word.rstrip] && maySplit(addedTexts(offsets, bytes, flags), joins);
    if (!splits) return encodePart(s);
    const parts: Uint32Array[] = [];
    eachPart(s, (part) => parts.push(encodePart(part)));
    return concatenated(parts);
  }

  const tokenBytes = (id: number): Uint8Array => {
    const from = offsets[id];
    const to = offsets[id + 1];
    return from === undefined || to === undefined ? NOTHING : bytes.subarray(from, to);
  };
  const keys = new Int32Array(TEXTS).fill(-1);
  const texts: string[] = new Array(TEXTS).fill("");
  const table: TokenTable = {
    whole(id) {
      const slot = id & (TEXTS - 1);
      if (keys[slot] === id) return texts[slot];
      if (!(flags[id]! & Flag.whole)) return undefined;
      const made = all.utf8Slice(bytes.byteOffset + offsets[id]!, bytes.byteOffset + offsets[id + 1]!);
      keys[slot] = id;
      texts[slot] = made;
      return made;
    },
    length(id) {
      const from = offsets[id];
      const to = offsets[id + 1];
      return from === undefined || to === undefined ? 0 : to - from;
    },
    copy(id, out, at) {
      let to = at;
      for (let i = offsets[id]!; i < offsets[id + 1]!; i++) out[to++] = bytes[i]!;
    },
    isSpecial: (id) => (flags[id]! & Flag.special) !== 0,
  };

  const names = new Map<string, number | undefined>();
  function tokenId(name: string): number | undefined {
    if (names.has(name)) return names.get(name);
    if (names.size >= MAX_NAMES) names.clear();
    const id = findToken(utf8.encode(name), offsets, bytes, flags);
    names.set(name, id);
    return id;
  }
  return {
    kind: "kernel",
    vocabSize,
    get longestToken() {
      return longestToken();
    },
    encode(s) {
      try {
        return encode(s);
      } catch (error) {
        if (error instanceof WebAssembly.RuntimeError)
          throw new TokenizerError("the text is too long for the tokenizer");
        throw error;
      }
    },
    decoder({ skipSpecialTokens }) {
      const plain = utf8Decoder(table, skipSpecialTokens);
      return header[Word.strip] ? strippedStart(plain, " ", 1) : plain;
    },
    tokenBytes,
    isSpecial: table.isSpecial,
    tokenId,
  };
}

function concatenated(parts: readonly Uint32Array[]): Uint32Array {
  const out = new Uint32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

function* addedTexts(offsets: Uint32Array, bytes: Uint8Array, flags: Uint8Array): Generator<string> {
  for (let id = 0; id < flags.length; id++) {
    if (flags[id]! & Flag.added) yield decoder.decode(bytes.slice(offsets[id]!, offsets[id + 1]!));
  }
}

/** The token of exactly these bytes; an added token goes before another of the same text. */
function findToken(key: Uint8Array, offsets: Uint32Array, bytes: Uint8Array, flags: Uint8Array): number | undefined {
  let found: number | undefined;
  for (let id = 0; id < flags.length; id++) {
    const from = offsets[id]!;
    if (offsets[id + 1]! - from !== key.length || key.length === 0) continue;
    let i = 0;
    while (i < key.length && bytes[from + i] === key[i]) i++;
    if (i < key.length) continue;
    if (flags[id]! & Flag.added) return id;
    found ??= id;
  }
  return found;
}
