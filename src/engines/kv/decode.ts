/** KvEventBatch of `smg.grpc.common` (proto/common.proto), read by hand: the batches of a busy engine are large, and come at every step. */
import { WireReader } from "../../protobuf/reader.ts";
import { WireError, WireType } from "../../protobuf/wire-error.ts";
import type { RankLoad } from "../admin.ts";
import type { HashWords, KvBatch, KvEvent, KvStored } from "../kv-events.ts";
import { isDevice, isWholePrompt } from "./residence.ts";

const TIER_DEVICE = 1;
const LOCALITY_REMOTE = 2;

// One batch is read at a time, and what is kept of it is copied: the scratch arrays are shared.
let hashWords = new Int32Array(2048);
let tokens = new Uint32Array(16_384);

/** What a word says: an engine has the same one in all events. */
class Word {
  private text = "";
  private isTrue: boolean;

  constructor(private readonly isTrueOf: (word: string) => boolean) {
    this.isTrue = isTrueOf("");
  }

  read(r: WireReader): boolean {
    const text = r.stringLike(this.text);
    if (text !== this.text) {
      this.text = text;
      this.isTrue = this.isTrueOf(text);
    }
    return this.isTrue;
  }
}
const device = new Word(isDevice);
const wholePrompt = new Word(isWholePrompt);

/** Throws WireError for bytes that are no KvEventBatch. */
export function decodeKvBatch(bytes: Uint8Array, start = 0, end = bytes.length): KvBatch {
  const r = new WireReader(bytes, start, end);
  const events: KvEvent[] = [];
  let sequence = 0;
  let rank = 0;
  let snapshot: KvBatch["snapshot"];
  let load: WireReader | undefined;
  while (r.next()) {
    if (r.field === 1) sequence = r.varint64(false);
    else if (r.field === 3) {
      const event = readEvent(r.message());
      if (event !== undefined) events.push(event);
    } else if (r.field === 4) rank = r.varint();
    else if (r.field === 7) snapshot = readSnapshot(r.message());
    else if (r.field === 8) load = r.message();
    else r.skip();
  }
  const told = load === undefined ? undefined : readLoad(load, rank);
  return { sequence, rank, events, snapshot, load: told?.load, isLoadOnly: told?.isLoadOnly === true };
}

/** Undefined for an event of a kind that is not known. */
function readEvent(r: WireReader): KvEvent | undefined {
  let event: KvEvent | undefined;
  while (r.next()) {
    if (r.field === 2) event = readStored(r.message());
    else if (r.field === 3) event = readRemoved(r.message());
    else if (r.field === 4) {
      r.skip();
      event = { kind: "cleared" };
    } else r.skip();
  }
  return event;
}

function readStored(r: WireReader): KvStored {
  const run = new StoredRun();
  let parent: HashWords | undefined;
  let lora: string | undefined;
  let cacheSalt: string | undefined;
  let isHere = true;
  while (r.next()) {
    if (r.field === 1) run.add(r);
    else if (r.field === 2) r.int64Words((parent = new Int32Array(2)), 0);
    else if (r.field === 11) lora = r.string();
    else if (r.field === 12) cacheSalt = r.string();
    else if (r.field === 3) isHere = isDeviceTier(r.varint()) && isHere;
    else if (r.field === 4) isHere = device.read(r) && isHere;
    else if (r.field === 6) isHere = wholePrompt.read(r) && isHere;
    else if (r.field === 8) isHere = r.varint() !== LOCALITY_REMOTE && isHere;
    else r.skip();
  }
  return run.taken(parent, lora, cacheSalt, isHere);
}

/** The blocks of one event, gathered into flat arrays. */
class StoredRun {
  isOnDevice = true;
  private blocks = 0;
  private tokenCount = 0;
  private blockSize = 0;
  /** A block that is no whole one ends what can be used. */
  private isCut = false;
  private loraId: string | undefined;
  private extras: (string[] | undefined)[] | undefined;

  /** A KvBlock. */
  add(r: WireReader): void {
    const end = r.lengthPrefix() + r.at;
    if (hashWords.length < 2 * this.blocks + 2) hashWords = grown(hashWords, new Int32Array(hashWords.length * 2));
    const at = 2 * this.blocks;
    const from = this.tokenCount;
    let size = 0;
    let extras: string[] | undefined;
    hashWords[at] = 0;
    hashWords[at + 1] = 0;
    while (r.at < end) {
      const tag = r.varint();
      const field = tag >>> 3;
      if (field === 1) r.int64Words(hashWords, at);
      else if (field === 2) this.readTokens(r, tag & 7);
      else if (field === 3) size = r.varint();
      else if (field === 4) this.loraId = `#${r.bigint(true)}`;
      else if (field === 5) this.isOnDevice = r.varint() === 0 && this.isOnDevice;
      else if (field === 6) {
        extras ??= [];
        const key = readExtraKey(r.message());
        if (key !== undefined) extras.push(key);
      } else r.skip(tag & 7);
    }
    if (r.at !== end) throw new WireError("field past the end of its message");
    const count = this.tokenCount - from;
    if (this.blocks === 0) this.blockSize = size || count;
    if (this.isCut || count !== this.blockSize || count === 0) {
      this.isCut = true;
      this.tokenCount = from;
      return;
    }
    if (extras !== undefined && extras.length > 0) {
      this.extras ??= [];
      this.extras[this.blocks] = extras;
    }
    this.blocks++;
  }

  /** The event, of which nothing is shared with the next one. */
  taken(parent: HashWords | undefined, lora: string | undefined, salt: string | undefined, isHere: boolean): KvStored {
    const { blocks, extras } = this;
    return {
      kind: "stored",
      parent,
      hashes: takenHashes(blocks),
      tokenIds: tokens.slice(0, this.tokenCount),
      blockSize: this.blockSize,
      lora: lora || this.loraId,
      cacheSalt: salt || undefined,
      media:
        extras === undefined ? undefined : Array.from({ length: blocks }, (_, i) => mediaOf(extras[i], lora, salt)),
      isLocalDevice: isHere && this.isOnDevice,
    };
  }

  private readTokens(r: WireReader, wireType: number): void {
    let count = this.tokenCount;
    if (wireType === WireType.BYTES) {
      const length = r.lengthPrefix();
      // no id is shorter than a byte
      if (count + length > tokens.length)
        tokens = grown(tokens, new Uint32Array(Math.max(count + length, tokens.length * 2)));
      count += r.packedUint32s(tokens, count, length);
    } else {
      if (count === tokens.length) tokens = grown(tokens, new Uint32Array(tokens.length * 2));
      tokens[count++] = r.varint();
    }
    this.tokenCount = count;
  }
}

/** A copy of the first of the hashes that were gathered. */
const takenHashes = (count: number): HashWords => hashWords.slice(0, 2 * count);

function grown<T extends Int32Array | Uint32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}

/** Of what went into a block's hash besides its tokens, that which is no name of the space that the block lives in. */
export function mediaOf(
  extras: readonly string[] | undefined,
  lora: string | undefined,
  salt: string | undefined,
): readonly string[] | undefined {
  const media = extras?.filter((key) => key !== lora && key !== salt);
  return media === undefined || media.length === 0 ? undefined : media;
}

/** KvBlockExtraKey. Undefined for numbers, which are those of adapters, and for one of a kind that is not known. */
function readExtraKey(r: WireReader): string | undefined {
  let key: string | undefined;
  while (r.next()) {
    if (r.field === 1) key = r.string();
    else if (r.field === 2) key = Buffer.from(r.block()).toString("base64");
    else if (r.field === 4) key = readIdentifier(r.message());
    else r.skip();
  }
  return key;
}

/** KvMultimodalKey. */
function readIdentifier(r: WireReader): string {
  let identifier = "";
  while (r.next()) {
    if (r.field === 1) identifier = r.string();
    else r.skip();
  }
  return identifier;
}

function readRemoved(r: WireReader): KvEvent {
  let count = 0;
  let isHere = true;
  const one = (): void => {
    if (hashWords.length < 2 * count + 2) hashWords = grown(hashWords, new Int32Array(hashWords.length * 2));
    r.int64Words(hashWords, 2 * count++);
  };
  while (r.next()) {
    if (r.field === 1) {
      if (r.wireType === WireType.BYTES) {
        const length = r.lengthPrefix();
        const end = r.at + length;
        while (r.at < end) one();
        if (r.at !== end) throw new WireError("number cut off or too long");
      } else one();
    } else if (r.field === 2) isHere = r.varint() === 0 && isHere;
    else if (r.field === 3) isHere = isDeviceTier(r.varint()) && isHere;
    else if (r.field === 4) isHere = device.read(r) && isHere;
    else if (r.field === 6) isHere = r.varint() !== LOCALITY_REMOTE && isHere;
    else r.skip();
  }
  return { kind: "removed", hashes: takenHashes(count), isLocalDevice: isHere };
}

const isDeviceTier = (tier: number): boolean => tier === 0 || tier === TIER_DEVICE;

function readSnapshot(r: WireReader): NonNullable<KvBatch["snapshot"]> {
  let index = 0;
  let count = 0;
  let unknownBefore = 0;
  while (r.next()) {
    if (r.field === 1) index = r.varint();
    else if (r.field === 2) count = r.varint();
    else if (r.field === 4) unknownBefore = r.varint();
    else r.skip();
  }
  return { index, count, ...(unknownBefore > 0 && { isPartial: true }) };
}

/** EngineLoad. What it may leave out is undefined. */
function readLoad(r: WireReader, rank: number): { readonly load: RankLoad; readonly isLoadOnly: boolean } {
  let running = 0;
  let waiting = 0;
  let waitingUncachedTokens: number | undefined;
  let usedTokens: number | undefined;
  let capacityTokens: number | undefined;
  let tokenUsage: number | undefined;
  let throughput: number | undefined;
  let cacheHitRate: number | undefined;
  let maxRunning: number | undefined;
  let isLoadOnly = false;
  while (r.next()) {
    if (r.field === 1) running = r.varint();
    else if (r.field === 2) waiting = r.varint();
    else if (r.field === 3) waitingUncachedTokens = r.varint();
    else if (r.field === 4) tokenUsage = r.double();
    else if (r.field === 5) throughput = r.double();
    else if (r.field === 6) maxRunning = r.varint() || undefined;
    else if (r.field === 9) isLoadOnly = r.bool();
    else if (r.field === 10) cacheHitRate = r.double();
    else if (r.field === 11) usedTokens = r.varint();
    else if (r.field === 12) capacityTokens = r.varint() || undefined;
    else r.skip();
  }
  const load: RankLoad = {
    rank,
    running,
    waiting,
    waitingUncachedTokens,
    usedTokens,
    capacityTokens,
    // proto3 does not send zeros
    tokenUsage: tokenUsage ?? 0,
    throughput: throughput ?? 0,
    cacheHitRate,
    utilization: undefined,
    maxRunning,
  };
  return { load, isLoadOnly };
}
