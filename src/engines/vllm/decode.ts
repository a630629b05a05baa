/** GenerateResponse of the vLLM dialect, read by hand into reused objects (`proto/vllm_engine.proto`). */
import { WireReader } from "../../protobuf/reader.ts";
import { WireError, WireType } from "../../protobuf/wire-error.ts";
import type { TokenChunk, TokenLogprobs } from "../engine.ts";

export type ResponseKind = "chunk" | "complete" | "unknown";

/** What a GenerateComplete says besides its tokens. */
export interface CompleteFields {
  finishReason: string;
  matchedTokenId: number | undefined;
  matchedStop: string | undefined;
}

/**
 * Decoder of one engine's responses. `decode` fills `chunk` (and for a Complete also `complete`); both are overwritten by the
 * next call. Logprobs are fresh objects, with the rows as the wire has them: the sampled token first.
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
  readonly complete: CompleteFields = { finishReason: "", matchedTokenId: undefined, matchedStop: undefined };
  private readonly reader = new WireReader();

  /** Decodes `bytes[start .. end)`. Throws WireError for bytes that are no GenerateResponse. */
  decode(bytes: Uint8Array, start = 0, end = bytes.length): ResponseKind {
    const reader = this.reader;
    reader.reset(bytes, start, end);
    let kind: ResponseKind = "unknown";
    while (reader.at < reader.end) {
      const tag = reader.varint();
      if (tag === ((1 << 3) | WireType.BYTES)) {
        kind = "chunk";
        this.readChunk(reader);
      } else if (tag === ((2 << 3) | WireType.BYTES)) {
        kind = "complete";
        this.readComplete(reader);
      } else reader.skip(tag & 7);
    }
    return kind;
  }

  private clear(): void {
    const { chunk } = this;
    chunk.index = 0;
    chunk.count = 0;
    chunk.promptTokens = 0;
    chunk.cachedTokens = 0;
    chunk.outputLogprobs = undefined;
    chunk.promptLogprobs = undefined;
  }

  private readChunk(reader: WireReader): void {
    this.clear();
    const { chunk } = this;
    const end = reader.lengthPrefix() + reader.at;
    while (reader.at < end) {
      const tag = reader.varint();
      switch (tag >>> 3) {
        case 1:
          this.readTokenIds(reader, tag & 7);
          break;
        case 2:
          chunk.promptTokens = reader.varint();
          break;
        case 4:
          chunk.cachedTokens = reader.varint();
          break;
        case 5:
          chunk.outputLogprobs = readLogprobs(reader, false);
          break;
        case 6:
          chunk.promptLogprobs = readLogprobs(reader, true);
          break;
        case 7:
          chunk.index = reader.varint();
          break;
        default:
          reader.skip(tag & 7);
      }
    }
    if (reader.at !== end) throw new WireError("field past the end of its message");
  }

  private readComplete(reader: WireReader): void {
    this.clear();
    const { chunk, complete } = this;
    complete.finishReason = "";
    complete.matchedTokenId = undefined;
    complete.matchedStop = undefined;
    const end = reader.lengthPrefix() + reader.at;
    while (reader.at < end) {
      const tag = reader.varint();
      switch (tag >>> 3) {
        case 1:
          this.readTokenIds(reader, tag & 7);
          break;
        case 2:
          complete.finishReason = reader.string();
          break;
        case 3:
          chunk.promptTokens = reader.varint();
          break;
        case 5:
          chunk.cachedTokens = reader.varint();
          break;
        case 6:
          chunk.outputLogprobs = readLogprobs(reader, false);
          break;
        case 7:
          chunk.promptLogprobs = readLogprobs(reader, true);
          break;
        case 8:
          chunk.index = reader.varint();
          break;
        case 10:
          complete.matchedTokenId = reader.varint();
          complete.matchedStop = undefined;
          break;
        case 11:
          complete.matchedStop = reader.string();
          complete.matchedTokenId = undefined;
          break;
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

type TopRow = TokenLogprobs["top"][number];

/** OutputLogProbs, or InputLogProbs when `optionalValues`: there each value is a message that may be empty. */
function readLogprobs(reader: WireReader, optionalValues: boolean): TokenLogprobs {
  const values: (number | null)[] = [];
  const tokenIds: number[] = [];
  const top: TopRow[] = [];
  const end = reader.lengthPrefix() + reader.at;
  while (reader.at < end) {
    const tag = reader.varint();
    const field = tag >>> 3;
    if (field === 1) {
      if (optionalValues) values.push(readOptionalValue(reader));
      else reader.floats(values as number[], tag & 7);
    } else if (field === 2) reader.uint32s(tokenIds, tag & 7);
    else if (field === 3) top.push(readTopRow(reader));
    else reader.skip(tag & 7);
  }
  if (reader.at !== end) throw new WireError("field past the end of its message");
  return { tokenIds, logprobs: values, top };
}

function readOptionalValue(reader: WireReader): number | null {
  let value: number | null = null;
  const end = reader.lengthPrefix() + reader.at;
  while (reader.at < end) {
    const tag = reader.varint();
    if (tag === ((1 << 3) | WireType.FIXED32)) value = reader.float();
    else reader.skip(tag & 7);
  }
  if (reader.at !== end) throw new WireError("field past the end of its message");
  return value;
}

function readTopRow(reader: WireReader): TopRow {
  const logprobs: number[] = [];
  const tokenIds: number[] = [];
  const end = reader.lengthPrefix() + reader.at;
  while (reader.at < end) {
    const tag = reader.varint();
    if (tag >>> 3 === 1) reader.floats(logprobs, tag & 7);
    else if (tag >>> 3 === 2) reader.uint32s(tokenIds, tag & 7);
    else reader.skip(tag & 7);
  }
  if (reader.at !== end) throw new WireError("field past the end of its message");
  return { tokenIds, logprobs };
}

/**
 * The best `count` rows of each position, highest first. Asked for one row more than needed, the engine's rows hold the best
 * `count` in any case: the sampled token either ranks among them or is the one too many.
 */
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
