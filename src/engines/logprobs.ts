/** Logprobs as the dialects send them. */
import type { WireReader } from "../protobuf/reader.ts";
import { WireError, WireType } from "../protobuf/wire-error.ts";
import type { TokenLogprobs } from "./engine.ts";

type TopRow = TokenLogprobs["top"][number];

export interface MutableLogprobs extends TokenLogprobs {
  readonly tokenIds: number[];
  readonly logprobs: (number | null)[];
  readonly top: TopRow[];
}

export const noLogprobs = (): MutableLogprobs => ({ tokenIds: [], logprobs: [], top: [] });

/** The end of the nested message whose length comes next. */
const nestedEnd = (reader: WireReader): number => reader.lengthPrefix() + reader.at;

function checkEnd(reader: WireReader, end: number): void {
  if (reader.at !== end) throw new WireError("field past the end of its message");
}

/** OutputLogProbs, which all dialects but TensorRT-LLM number alike. */
export const readOutputLogprobs = (reader: WireReader): MutableLogprobs => readLogprobs(reader, false);

/** InputLogProbs: each value is a message, and the first one is empty, as nothing came before the first token. */
export const readInputLogprobs = (reader: WireReader): MutableLogprobs => readLogprobs(reader, true);

function readLogprobs(reader: WireReader, optionalValues: boolean): MutableLogprobs {
  const read = noLogprobs();
  const end = nestedEnd(reader);
  while (reader.at < end) {
    const tag = reader.varint();
    const field = tag >>> 3;
    if (field === 1) {
      if (optionalValues) read.logprobs.push(readOptionalValue(reader));
      else reader.floats(read.logprobs as number[], tag & 7);
    } else if (field === 2) reader.uint32s(read.tokenIds, tag & 7);
    else if (field === 3) read.top.push(readTopRow(reader));
    else reader.skip(tag & 7);
  }
  checkEnd(reader, end);
  return read;
}

function readOptionalValue(reader: WireReader): number | null {
  let value: number | null = null;
  const end = nestedEnd(reader);
  while (reader.at < end) {
    const tag = reader.varint();
    if (tag === ((1 << 3) | WireType.FIXED32)) value = reader.float();
    else reader.skip(tag & 7);
  }
  checkEnd(reader, end);
  return value;
}

function readTopRow(reader: WireReader): TopRow {
  const logprobs: number[] = [];
  const tokenIds: number[] = [];
  const end = nestedEnd(reader);
  while (reader.at < end) {
    const tag = reader.varint();
    if (tag >>> 3 === 1) reader.floats(logprobs, tag & 7);
    else if (tag >>> 3 === 2) reader.uint32s(tokenIds, tag & 7);
    else reader.skip(tag & 7);
  }
  checkEnd(reader, end);
  return { tokenIds, logprobs };
}

/** TokenLogprob of TensorRT-LLM: one token with its alternatives, each a TopLogprob. */
export function readTokenLogprob(reader: WireReader, into: MutableLogprobs): void {
  const top = { tokenIds: [] as number[], logprobs: [] as number[] };
  let tokenId = 0;
  let logprob = 0;
  const end = nestedEnd(reader);
  while (reader.at < end) {
    const tag = reader.varint();
    if (tag === ((1 << 3) | WireType.VARINT)) tokenId = reader.varint();
    else if (tag === ((2 << 3) | WireType.FIXED32)) logprob = reader.float();
    else if (tag === ((3 << 3) | WireType.BYTES)) {
      const rowEnd = nestedEnd(reader);
      let id = 0;
      let value = 0;
      while (reader.at < rowEnd) {
        const inner = reader.varint();
        if (inner === ((1 << 3) | WireType.VARINT)) id = reader.varint();
        else if (inner === ((2 << 3) | WireType.FIXED32)) value = reader.float();
        else reader.skip(inner & 7);
      }
      checkEnd(reader, rowEnd);
      top.tokenIds.push(id);
      top.logprobs.push(value);
    } else reader.skip(tag & 7);
  }
  checkEnd(reader, end);
  into.tokenIds.push(tokenId);
  into.logprobs.push(logprob);
  into.top.push(top);
}
