import type { EncodeOptions, PostProcessor, TextBuffer, Tokenizer } from "../tokenizer.ts";
import {
  type Beginnings,
  findBeginnings,
  hasBeginnings,
  hashOf,
  putBeginnings,
  shorter,
  unknown,
} from "./beginnings.ts";
import { Count, Level, type LevelCode, openCacheBoard } from "./board.ts";
import { textBytes } from "./text-bytes.ts";

/** The self-check has found that a level gave wrong ids; both levels are off now. Counts are of all threads. */
export interface CacheMismatch {
  readonly level: "l0" | "l1";
  readonly hits: number;
  readonly mismatches: number;
}

export interface CachedTokenizerOptions {
  /** Share of the hits that are encoded anew and compared, 0 to 1. Texts that take long to encode are left out. */
  readonly verifyShare: number;
  /** Numbers in [0, 1) that choose them. */
  readonly random?: () => number;
  readonly onMismatch?: (mismatch: CacheMismatch) => void;
}

/** A tokenizer behind a cache. */
export interface CachedTokenizer extends Tokenizer {
  /** Stores what another thread made of a text that `encodeSoon` gave no answer for. */
  remember(text: string, ids: Uint32Array, options?: EncodeOptions): void;
}

/** Shorter texts, in UTF-16 units, are encoded as fast as they are looked up. */
const SHORTEST = 256;
/** Longest text, in bytes, that is written to the tokenizer's buffer, which stays as large as it ever was. */
const LONGEST_CUT = 1 << 20;

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => Buffer.prototype.equals.call(a, b);

const NO_OPTIONS: EncodeOptions = {};
const AS_TEXT: EncodeOptions = { specialAsText: true };

/**
 * A tokenizer that takes ids from a cache: those of whole texts (L0), and those of the longest known beginning of a text, behind
 * which only the rest is encoded (L1). They are always those that `tokenizer` gives. `memory` may be shared with other threads
 * that have the same tokenizer; without it nothing is cached.
 *
 * The keys are a text's bytes and `specialAsText`; what the post-processor adds is put around what the cache holds. L1 is used where
 * the tokenizer says that it can be cut, never for `specialAsText`.
 */
export function cachedTokenizer(
  tokenizer: Tokenizer,
  memory: SharedArrayBuffer | undefined,
  { verifyShare, random = Math.random, onMismatch }: CachedTokenizerOptions,
): CachedTokenizer {
  if (memory === undefined) return wrapped(tokenizer, tokenizer.encode, tokenizer.encodeSoon, () => undefined);
  const board = openCacheBoard(memory);
  const { postProcessor } = tokenizer;

  function plain(text: string, asText: boolean, soon: boolean): Uint32Array | undefined {
    const options = asText ? AS_TEXT : NO_OPTIONS;
    return soon ? tokenizer.encodeSoon(text, options) : tokenizer.encode(text, options);
  }
  const isCached = (text: string): boolean =>
    text.length >= SHORTEST && text.length <= board.longest && (board.isOn(Level.l0) || board.isOn(Level.l1));

  /** The tokenizer's buffer, if a beginning of the text may be known: the text is looked at there, where it has to go anyway. */
  function bufferFor(text: string, asText: boolean): TextBuffer | undefined {
    if (asText || tokenizer.buffer === undefined || !hasBeginnings(text.length * 3) || !board.isOn(Level.l1))
      return undefined;
    const isShort = text.length * 3 <= LONGEST_CUT || Buffer.byteLength(text) <= LONGEST_CUT;
    return isShort ? tokenizer.buffer : undefined;
  }

  /** Ids of a text without what the post-processor puts around them. */
  function bare(text: string, asText: boolean, soon: boolean): Uint32Array | undefined {
    if (!isCached(text)) return plain(text, asText, soon);
    const buffer = bufferFor(text, asText);
    const bytes = buffer ? buffer.write(text) : textBytes(text);
    const key = hashOf(bytes, board.seed);
    if (board.isOn(Level.l0)) {
      const ids = find(bytes, key, asText);
      if (ids !== undefined) return checked(Level.l0, ids, text, asText);
      board.count(Level.l0, Count.misses);
    }
    if (buffer !== undefined && hasBeginnings(bytes.length)) {
      const ids = bareByCuts(buffer, text, bytes, key);
      if (ids !== undefined || soon) return ids;
    }
    const ids = plain(text, asText, soon);
    if (ids !== undefined) store(buffer ? textBytes(text) : bytes, key, asText, ids);
    return ids;
  }

  function find(bytes: Uint8Array, key: bigint, asText: boolean): Uint32Array | undefined {
    const found = board.find(Level.l0, key, bytes.length, asText);
    const content = found && board.contentOf(found);
    if (!found || !content || !sameBytes(bytes, content.text)) return undefined;
    const ids = new Uint32Array(content.ids);
    return board.lives(found) ? ids : undefined;
  }

  /** The same in pieces of what was written to `buffer`; undefined if it would take long. */
  function bareByCuts(buffer: TextBuffer, text: string, bytes: Uint8Array, key: bigint): Uint32Array | undefined {
    let known = findBeginnings(board, buffer, bytes);
    let content = known.last && board.contentOf(known.last);
    while (known.last && !(content && sameBytes(bytes.subarray(0, known.last.length), content.text))) {
      known = shorter(known);
      content = known.last && board.contentOf(known.last);
    }
    const { last } = known;
    if (last && content) {
      const rest = buffer.encodeFrom(last.length);
      if (rest === undefined) return undefined;
      const ids = new Uint32Array(last.count + rest.ids.length);
      ids.set(content.ids);
      ids.set(rest.ids, last.count);
      if (board.lives(last)) {
        store(asWritten(bytes, key, text), key, false, ids, known, rest.cuts);
        return checked(Level.l1, ids, text, false);
      }
      buffer.write(text);
    }
    board.count(Level.l1, Count.misses);
    const all = buffer.encodeFrom(0);
    if (all === undefined) return undefined;
    const ids = new Uint32Array(all.ids);
    store(asWritten(bytes, key, text), key, false, ids, last ? unknown(known) : known, all.cuts);
    return ids;
  }

  /** A tokenizer may write over characters beyond ASCII as it encodes them. */
  const asWritten = (bytes: Uint8Array, key: bigint, text: string): Uint8Array =>
    bytes.length === text.length || hashOf(bytes, board.seed) === key ? bytes : textBytes(text);

  function store(
    bytes: Uint8Array,
    key: bigint,
    asText: boolean,
    ids: Uint32Array,
    known?: Beginnings,
    cuts?: Uint32Array,
  ): void {
    if (!isWorthIt(known && cuts && cuts.length > 0 ? known.start : key)) return;
    const at = board.append(bytes, ids);
    if (at < 0) return;
    if (board.isOn(Level.l0) && board.put(Level.l0, key, at, bytes.length, ids.length, asText))
      board.count(Level.l0, Count.insertions);
    if (known === undefined || cuts === undefined) return;
    const added = putBeginnings(board, at, bytes, known, cuts);
    if (added > 0) board.count(Level.l1, Count.insertions, added);
  }

  /**
   * Is a text stored? While texts come again, all are. Else it is only noted, by a hash of what it begins with or of all of it, as storing
   * takes several percent of the encoding; it is stored if it was noted before.
   */
  function isWorthIt(mark: bigint): boolean {
    if (board.spend()) return true;
    const cameAgain = board.knows(mark);
    if (cameAgain) board.earn();
    else board.note(mark);
    return cameAgain;
  }

  /** Ids that came out of the cache, or after a failed self-check the right ones. */
  function checked(level: LevelCode, ids: Uint32Array, text: string, asText: boolean): Uint32Array {
    board.count(level, Count.hits);
    board.earn();
    if (random() >= verifyShare) return ids;
    const right = plain(text, asText, true);
    if (right === undefined || (right.length === ids.length && right.every((id, i) => id === ids[i]))) return ids;
    board.count(level, Count.mismatches);
    board.switchOff();
    onMismatch?.({
      level: level === Level.l0 ? "l0" : "l1",
      hits: board.read(level, Count.hits),
      mismatches: board.read(level, Count.mismatches),
    });
    return right;
  }

  function encode(text: string, options: EncodeOptions, soon: boolean): Uint32Array | undefined {
    const ids = bare(text, options.specialAsText === true, soon);
    return ids && options.addSpecialTokens ? around(postProcessor, ids) : ids;
  }
  return wrapped(
    tokenizer,
    (text, options = NO_OPTIONS) => encode(text, options, false)!,
    (text, options = NO_OPTIONS) => encode(text, options, true),
    (text, ids, options = NO_OPTIONS) => {
      const bareIds = options.addSpecialTokens ? inside(postProcessor, ids) : ids;
      if (bareIds === undefined || !isCached(text) || !board.isOn(Level.l0)) return;
      const bytes = textBytes(text);
      const key = hashOf(bytes, board.seed);
      const asText = options.specialAsText === true;
      if (find(bytes, key, asText) === undefined) store(bytes, key, asText, bareIds);
    },
  );
}

function wrapped(
  tokenizer: Tokenizer,
  encode: Tokenizer["encode"],
  encodeSoon: Tokenizer["encodeSoon"],
  remember: CachedTokenizer["remember"],
): CachedTokenizer {
  const { kind, vocabSize, postProcessor, buffer, decoder, tokenBytes, isSpecial, isAdded, tokenId } = tokenizer;
  return {
    kind,
    vocabSize,
    postProcessor,
    get longestToken() {
      return tokenizer.longestToken; // may be found out when it is first asked for
    },
    encode,
    encodeSoon,
    buffer,
    decoder,
    tokenBytes,
    isSpecial,
    isAdded,
    tokenId,
    remember,
  };
}

function around({ single }: PostProcessor, ids: Uint32Array): Uint32Array {
  const texts = single.filter((part) => part === "A").length;
  const out = new Uint32Array(single.length + texts * (ids.length - 1));
  let at = 0;
  for (const part of single) {
    if (part === "A") out.set(ids, at);
    else out[at] = part;
    at += part === "A" ? ids.length : 1;
  }
  return out;
}

/** What stands between the ids that the post-processor put; undefined if it does not take the text once. */
function inside({ single }: PostProcessor, ids: Uint32Array): Uint32Array | undefined {
  const before = single.indexOf("A");
  if (before < 0 || before !== single.lastIndexOf("A")) return undefined;
  return ids.subarray(before, ids.length - (single.length - 1 - before));
}
