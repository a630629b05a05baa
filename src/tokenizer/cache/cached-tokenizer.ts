import type { EncodedRest, EncodeOptions, TextBuffer, Tokenizer } from "../tokenizer.ts";
import { isWorthIt } from "./admission.ts";
import {
  type Beginnings,
  findBeginnings,
  hasBeginnings,
  LEAST_SEGMENT,
  putBeginnings,
  shorter,
  unknown,
} from "./beginnings.ts";
import { Count, type Found, Level, type LevelCode, openCacheBoard } from "./board.ts";
import { type Halves, type Hash, hashOf, startIn, wholeIn } from "./hash.ts";
import { HotTexts } from "./hot-texts.ts";
import { around, inside, joined } from "./id-arrays.ts";
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
  /**
   * Calls back when there is time to store a text that is in the tokenizer's buffer, so that the request need not wait for it; storing
   * takes a tenth of what encoding does. By default texts are stored at once. One that is encoded before has the one before stored first.
   */
  readonly later?: (store: () => void) => void;
}

/** A text that was encoded in the tokenizer's buffer, and what is known of it; views of that buffer. */
interface Waiting {
  readonly stamp: number;
  readonly text: string;
  readonly bytes: Uint8Array;
  readonly key: Halves;
  /** Behind the last known beginning. */
  readonly rest: EncodedRest;
  readonly known: Beginnings;
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
  { verifyShare, random = Math.random, onMismatch, later }: CachedTokenizerOptions,
): CachedTokenizer {
  if (memory === undefined) return wrapped(tokenizer, tokenizer.encode, tokenizer.encodeSoon, () => undefined);
  const board = openCacheBoard(memory);
  const { postProcessor } = tokenizer;
  const hotTexts = new HotTexts(board);
  let waiting: Waiting | undefined;
  /** Was `later` called, and has not called back? */
  let isAsked = false;

  function plain(text: string, asText: boolean, soon: boolean): Uint32Array | undefined {
    settle();
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
    settle();
    if (!isCached(text)) return plain(text, asText, soon);
    const hasL0 = board.isOn(Level.l0);
    const hot = hasL0 ? hotTexts.idsOf(text, asText) : undefined;
    if (hot !== undefined) return checked(Level.l0, hot, text, asText);
    const buffer = bufferFor(text, asText);
    const bytes = buffer ? buffer.write(text) : textBytes(text);
    const digest = buffer?.digest(board.seed, LEAST_SEGMENT);
    const whole = digest && wholeIn(digest);
    const start = digest && startIn(digest);
    const key = whole ?? hashOf(bytes, board.seed);
    if (hasL0) {
      const ids = find(text, bytes, key, asText);
      if (ids !== undefined) return checked(Level.l0, ids, text, asText);
    }
    if (buffer && whole && start && hasBeginnings(bytes.length)) {
      const ids = bareByCuts(buffer, text, bytes, whole, start);
      if (ids !== undefined || soon) return ids;
    } else missed(false);
    const ids = plain(text, asText, soon);
    if (ids !== undefined && isWorthIt(board, key)) put(buffer ? textBytes(text) : bytes, key, asText, ids);
    return ids;
  }

  function find(text: string, bytes: Uint8Array, key: Hash, asText: boolean): Uint32Array | undefined {
    const found = board.find(Level.l0, key, bytes.length, asText);
    const content = found && board.contentOf(found);
    if (!found || !content || !sameBytes(bytes, content.text)) return undefined;
    const ids = new Uint32Array(content.ids);
    if (!board.lives(found)) return undefined;
    hotTexts.see(text, asText, found.at, ids);
    return ids;
  }

  /** The same in pieces of what was written to `buffer`; undefined if it would take long. */
  function bareByCuts(
    buffer: TextBuffer,
    text: string,
    bytes: Uint8Array,
    key: Halves,
    start: Halves,
  ): Uint32Array | undefined {
    let known = findBeginnings(board, buffer, bytes, start);
    let content = known.last && board.contentOf(known.last);
    while (known.last && !(content && sameBytes(bytes.subarray(0, known.last.length), content.text))) {
      known = shorter(known);
      content = known.last && board.contentOf(known.last);
    }
    const { last } = known;
    if (last && content) {
      const rest = buffer.encodeFrom(last.length);
      if (rest === undefined) return missed(false);
      const ids = joined(content.ids, rest.ids);
      if (board.lives(last)) {
        wait({ stamp: buffer.stamp(), text, bytes, key, rest, known });
        return checked(Level.l1, ids, text, false);
      }
      buffer.write(text);
      known = unknown(known);
    }
    const rest = buffer.encodeFrom(0);
    if (rest === undefined) return missed(true);
    const ids = new Uint32Array(rest.ids);
    wait({ stamp: buffer.stamp(), text, bytes, key, rest, known });
    return ids;
  }

  function missed(l1: boolean): undefined {
    if (board.isOn(Level.l0)) board.count(Level.l0, Count.misses);
    if (l1) board.count(Level.l1, Count.misses);
  }

  function wait(one: Waiting): void {
    waiting = one;
    if (later === undefined) settle();
    else if (!isAsked) {
      isAsked = true;
      later(onPause);
    }
  }
  function onPause(): void {
    isAsked = false;
    settle();
  }

  /** Stores what waits, if it is still in the tokenizer's buffer, and counts it. */
  function settle(): void {
    if (waiting === undefined) return;
    const { stamp, text, bytes, key, rest, known } = waiting;
    waiting = undefined;
    missed(known.last === undefined);
    if (tokenizer.buffer?.stamp() !== stamp || !isWorthIt(board, rest.cuts.length > 0 ? known.start : key)) return;
    const ids = idsOf(known.last, rest.ids);
    if (ids !== undefined) put(asWritten(bytes, text), key, false, ids, known, rest.cuts);
  }

  /** Of a beginning whose text was compared, and of the rest; undefined if the beginning is gone. */
  function idsOf(last: Found | undefined, rest: Uint32Array): Uint32Array | undefined {
    if (last === undefined) return rest;
    const content = board.contentOf(last);
    const ids = content && joined(content.ids, rest);
    return board.lives(last) ? ids : undefined;
  }

  /** A tokenizer may write over characters beyond ASCII as it encodes them. */
  const asWritten = (bytes: Uint8Array, text: string): Uint8Array =>
    bytes.length === text.length ? bytes : textBytes(text);

  function put(
    bytes: Uint8Array,
    key: Hash,
    asText: boolean,
    ids: Uint32Array,
    known?: Beginnings,
    cuts?: Uint32Array,
  ): void {
    const at = board.append(bytes, ids);
    if (at < 0) return;
    if (board.isOn(Level.l0) && board.put(Level.l0, key, at, bytes.length, ids.length, asText))
      board.count(Level.l0, Count.insertions);
    if (known === undefined || cuts === undefined) return;
    const added = putBeginnings(board, at, bytes, known, cuts);
    if (added > 0) board.count(Level.l1, Count.insertions, added);
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
      settle();
      const asText = options.specialAsText === true;
      const buffer = bufferFor(text, asText);
      const bytes = buffer ? buffer.write(text) : textBytes(text);
      const digest = buffer?.digest(board.seed, LEAST_SEGMENT);
      const key = digest ? wholeIn(digest) : hashOf(bytes, board.seed);
      if (find(text, bytes, key, asText) === undefined && isWorthIt(board, key)) put(bytes, key, asText, bareIds);
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
