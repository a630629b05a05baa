import { type FallbackTable, fallbackDecoder } from "./byte-fallback.ts";
import { Family, Flag, Word } from "./image/header.ts";
import { growBy, IMAGE_AT, instantiate } from "./kernel/kernel.ts";
import { concatenated, kernelEncoder, Split } from "./kernel-encoder.ts";
import { type EncodeOptions, type PostProcessor, type Tokenizer, TokenizerError } from "./tokenizer.ts";
import { strippedStart, type TokenTable, utf8Decoder } from "./utf8-decoder.ts";

/** Tables of a tokenizer in shared memory; can be sent to other threads. */
export interface KernelHandle {
  readonly kind: "kernel";
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  readonly postProcessor: PostProcessor;
}

/** Per thread: 2^15 words of up to 16 bytes (32 bytes each) and 2^12 longer ones (256 bytes each), 2 MB once filled. */
const WORD_BITS = 15;
const LONG_BITS = 12;
const CACHE_BYTES = 2 ** WORD_BITS * 33 + 2 ** LONG_BITS * 256;
/** Token texts kept per thread, replaced in place. */
const TEXTS = 1 << 14;
/** Looked-up token names kept per thread. */
const MAX_NAMES = 4096;

const utf8 = new TextEncoder();
const NO_OPTIONS: EncodeOptions = {};
const NOTHING = new Uint8Array(0);

/** A tokenizer over shared tables, for the thread that calls: it gets a word cache and buffers of its own (3.5 MB). */
export function openKernelTokenizer({ module, memory, postProcessor }: KernelHandle): Tokenizer {
  const kernel = instantiate(module, memory);
  kernel.init(IMAGE_AT, growBy(memory, CACHE_BYTES), WORD_BITS, LONG_BITS);
  const encoder = kernelEncoder(kernel, memory);
  const { header, offsets, bytes, flags } = encoder.image;
  const vocabSize = flags.length;
  const nfc = header[Word.nfc] === 1;
  const strip = header[Word.strip] === 1;
  const all = Buffer.from(memory.buffer);
  /** In bytes, of which a text has as many as UTF-16 units or more; found when it is first asked for. */
  let longest = 0;
  function longestToken(): number {
    if (longest === 0)
      for (let id = 0; id < vocabSize; id++) longest = Math.max(longest, offsets[id + 1]! - offsets[id]!);
    return nfc ? longest * 2 : longest; // NFC may make three units of text two bytes
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

  const fallback: FallbackTable = {
    text: table.whole,
    byte: (id) => (flags[id]! & Flag.byte ? bytes[offsets[id]!]! : -1),
    isSpecial: table.isSpecial,
  };
  const isFallback = header[Word.family] === Family.gemma;

  const names = new Map<string, number | undefined>();
  function tokenId(name: string): number | undefined {
    if (names.has(name)) return names.get(name);
    if (names.size >= MAX_NAMES) names.clear();
    const id = findToken(utf8.encode(name), offsets, bytes, flags);
    names.set(name, id);
    return id;
  }
  const around = (text: Uint32Array, options: EncodeOptions): Uint32Array =>
    options.addSpecialTokens ? processed(postProcessor, text) : text;
  const split = ({ specialAsText }: EncodeOptions): number => (specialAsText ? Split.notSpecial : Split.all);
  const buffer = encoder.buffer && {
    ...encoder.buffer,
    encodeFrom: (from: number) => inRoom(() => encoder.buffer?.encodeFrom(from)),
  };
  return {
    kind: "kernel",
    vocabSize,
    postProcessor,
    get longestToken() {
      return longestToken();
    },
    encode: (text, options = NO_OPTIONS) =>
      around(
        inRoom(() => encoder.encode(text, split(options))),
        options,
      ),
    encodeSoon(text, options = NO_OPTIONS) {
      const ids = inRoom(() => encoder.encodeSoon(text, split(options)));
      return ids && around(ids, options);
    },
    buffer,
    decoder({ skipSpecialTokens }) {
      const plain = isFallback ? fallbackDecoder(fallback, skipSpecialTokens) : utf8Decoder(table, skipSpecialTokens);
      return strip ? strippedStart(plain, " ", 1) : plain;
    },
    tokenBytes,
    isSpecial: table.isSpecial,
    isAdded: (id) => (flags[id]! & Flag.added) !== 0,
    tokenId,
  };
}

/** The ids of one text with what the post-processor puts around them. */
function processed({ single }: PostProcessor, text: Uint32Array): Uint32Array {
  return concatenated(single.map((part) => (part === "A" ? text : Uint32Array.of(part))));
}

/** The kernel traps when memory is at its limit. */
function inRoom<T>(encode: () => T): T {
  try {
    return encode();
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) throw new TokenizerError("the text is too long for the tokenizer");
    throw error;
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
