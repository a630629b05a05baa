/** GenerateResponse of every dialect, read by hand into reused objects. The dialects differ in the numbers of the fields. */
import { WireReader } from "../protobuf/reader.ts";
import { WireError, WireType } from "../protobuf/wire-error.ts";
import type { Handover, TokenChunk, TokenLogprobs } from "./engine.ts";
import {
  type MutableLogprobs,
  noLogprobs,
  readInputLogprobs,
  readOutputLogprobs,
  readTokenLogprob,
} from "./logprobs.ts";

export type ResponseKind = "chunk" | "complete" | "unknown";

/** What a field of a chunk or a Complete means to us; 0: nothing. */
export const Role = {
  tokenIds: 1,
  promptTokens: 2,
  cachedTokens: 3,
  index: 4,
  completionTokens: 5,
  /** OutputLogProbs. */
  outputLogprobs: 6,
  /** InputLogProbs: there each value is a message that may be empty. */
  inputLogprobs: 7,
  finishReason: 8,
  matchedTokenId: 9,
  matchedStop: 10,
  /** A TokenLogprob of the output. */
  outputLogprob: 11,
  /** A TokenLogprob of the prompt. */
  promptLogprob: 12,
  /** A message of the host and the port that a decoding engine is to be told. */
  handoverPlace: 13,
  /** The same, and more, as a JSON object. */
  handoverJson: 14,
} as const;

type RoleName = keyof typeof Role;

export interface ResponseLayout {
  /** Field numbers of the two kinds in GenerateResponse. */
  readonly chunkField: number;
  readonly completeField: number;
  /** `Role` by the number of a field. */
  readonly chunk: Uint8Array;
  readonly complete: Uint8Array;
}

/** Numbers beyond it are skipped. */
const FIELDS = 32;

/** Field numbers by what they mean, as a table by number. */
export function rolesOf(numbers: Partial<Record<RoleName, number>>): Uint8Array {
  const roles = new Uint8Array(FIELDS);
  for (const [name, number] of Object.entries(numbers)) roles[number] = Role[name as RoleName];
  return roles;
}

/** What a GenerateComplete says besides its tokens. */
export interface CompleteFields {
  finishReason: string;
  completionTokens: number;
  matchedTokenId: number | undefined;
  matchedStop: string | undefined;
  /** What the engine that goes on with the prompt must be told. */
  handover: Handover | undefined;
}

/**
 * Decoder of one engine's responses. `decode` fills `chunk` (and for a Complete also `complete`); both are overwritten by the
 * next call. Logprobs are fresh objects, with the rows as the wire has them.
 */
export class GenerateResponseDecoder {
  readonly chunk: TokenChunk = {
    index: 0,
    tokenIds: new Uint32Array(16),
    count: 0,
    promptTokens: 0,
    cachedTokens: 0,
    outputLogprobs: undefined,
    promptLogprobs: undefined,
  };
  readonly complete: CompleteFields = {
    finishReason: "",
    completionTokens: 0,
    matchedTokenId: undefined,
    matchedStop: undefined,
    handover: undefined,
  };
  private readonly reader = new WireReader();
  private readonly chunkTag: number;
  private readonly completeTag: number;
  private readonly chunkRoles: Uint8Array;
  private readonly completeRoles: Uint8Array;

  constructor({ chunkField, completeField, chunk, complete }: ResponseLayout) {
    this.chunkTag = (chunkField << 3) | WireType.BYTES;
    this.completeTag = (completeField << 3) | WireType.BYTES;
    this.chunkRoles = chunk;
    this.completeRoles = complete;
  }

  /** Decodes `bytes[start .. end)`. Throws WireError for bytes that are no GenerateResponse. */
  decode(bytes: Uint8Array, start = 0, end = bytes.length): ResponseKind {
    const reader = this.reader;
    reader.reset(bytes, start, end);
    let kind: ResponseKind = "unknown";
    while (reader.at < reader.end) {
      const tag = reader.varint();
      if (tag === this.chunkTag) {
        kind = "chunk";
        this.readFields(reader, this.chunkRoles);
      } else if (tag === this.completeTag) {
        kind = "complete";
        const { complete } = this;
        complete.finishReason = "";
        complete.completionTokens = 0;
        complete.matchedTokenId = undefined;
        complete.matchedStop = undefined;
        complete.handover = undefined;
        this.readFields(reader, this.completeRoles);
      } else reader.skip(tag & 7);
    }
    return kind;
  }

  private readFields(reader: WireReader, roles: Uint8Array): void {
    const { chunk, complete } = this;
    chunk.index = 0;
    chunk.count = 0;
    chunk.promptTokens = 0;
    chunk.cachedTokens = 0;
    chunk.outputLogprobs = undefined;
    chunk.promptLogprobs = undefined;
    let output: MutableLogprobs | undefined;
    let prompt: MutableLogprobs | undefined;
    const end = reader.lengthPrefix() + reader.at;
    while (reader.at < end) {
      const tag = reader.varint();
      switch (roles[tag >>> 3]) {
        case Role.tokenIds:
          this.readTokenIds(reader, tag & 7);
          break;
        case Role.promptTokens:
          chunk.promptTokens = reader.varint();
          break;
        case Role.cachedTokens:
          chunk.cachedTokens = reader.varint();
          break;
        case Role.index:
          chunk.index = reader.varint();
          break;
        case Role.completionTokens:
          complete.completionTokens = reader.varint();
          break;
        case Role.outputLogprobs:
          chunk.outputLogprobs = readOutputLogprobs(reader);
          break;
        case Role.inputLogprobs:
          chunk.promptLogprobs = readInputLogprobs(reader);
          break;
        case Role.finishReason:
          complete.finishReason = reader.string();
          break;
        case Role.matchedTokenId:
          complete.matchedTokenId = reader.varint();
          complete.matchedStop = undefined;
          break;
        case Role.matchedStop:
          complete.matchedStop = reader.string();
          complete.matchedTokenId = undefined;
          break;
        case Role.outputLogprob:
          output ??= noLogprobs();
          readTokenLogprob(reader, output);
          chunk.outputLogprobs = output;
          break;
        case Role.promptLogprob:
          prompt ??= noLogprobs();
          readTokenLogprob(reader, prompt);
          chunk.promptLogprobs = prompt;
          break;
        case Role.handoverPlace:
          // the JSON says the same and more
          complete.handover ??= readPlace(reader);
          break;
        case Role.handoverJson: {
          const json = reader.string();
          if (json !== "") complete.handover = { kind: "transfer", json };
          break;
        }
        default:
          reader.skip(tag & 7);
      }
    }
    if (reader.at !== end) throw new WireError("field past the end of its message");
  }

  private readTokenIds(reader: WireReader, wireType: number): void {
    const { chunk } = this;
    let count = chunk.count;
    if (wireType === WireType.BYTES) {
      const length = reader.lengthPrefix();
      // No id is shorter than a byte, so this is room enough.
      if (count + length > chunk.tokenIds.length) this.grow(count + length);
      const ids = chunk.tokenIds;
      for (const end = reader.at + length; reader.at < end; ) ids[count++] = reader.varint();
    } else {
      if (count === chunk.tokenIds.length) this.grow(count + 1);
      chunk.tokenIds[count++] = reader.varint();
    }
    chunk.count = count;
  }

  private grow(needed: number): void {
    const { chunk } = this;
    const ids = new Uint32Array(Math.max(needed, chunk.tokenIds.length * 2));
    ids.set(chunk.tokenIds.subarray(0, chunk.count));
    chunk.tokenIds = ids;
  }
}

/** 1 host, 2 port; undefined where one of them says nothing. */
function readPlace(reader: WireReader): Handover | undefined {
  let host = "";
  let port = 0;
  const end = reader.lengthPrefix() + reader.at;
  while (reader.at < end) {
    const tag = reader.varint();
    if (tag >>> 3 === 1) host = reader.string();
    else if (tag >>> 3 === 2) port = reader.varint();
    else reader.skip(tag & 7);
  }
  if (reader.at !== end) throw new WireError("field past the end of its message");
  return host === "" || port === 0 ? undefined : { kind: "remote", host, port };
}

/** The best `count` rows of each position, highest first. */
export function bestRows(logprobs: TokenLogprobs, count: number): TokenLogprobs {
  if (logprobs.top.length === 0) return logprobs;
  return {
    tokenIds: logprobs.tokenIds,
    logprobs: logprobs.logprobs,
    top: logprobs.top.map((row) => {
      const order = row.tokenIds.map((_, i) => i);
      order.sort(
        (a, b) => (row.logprobs[b] ?? Number.NEGATIVE_INFINITY) - (row.logprobs[a] ?? Number.NEGATIVE_INFINITY),
      );
      order.length = Math.min(order.length, Math.max(0, count));
      return { tokenIds: order.map((i) => row.tokenIds[i]!), logprobs: order.map((i) => row.logprobs[i]!) };
    }),
  };
}
