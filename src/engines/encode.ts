/** What the GenerateRequests of all dialects have in common: token ids between a head and a tail, seeds, biases, stops. */
import { WireType } from "../protobuf/wire-error.ts";
import { putVarint, varintSize, type WireWriter } from "../protobuf/writer.ts";
import { EngineError, type GenerateRequest, type Handover } from "./engine.ts";

/** The field of the token ids' message in every dialect's requests. */
const TOKENIZED_FIELD = 2;
const MAX_INT32 = 0x7fffffff;

/** The schema of every JSON object: no dialect but vLLM has a way of its own to ask for one, and there only new servicers read it. */
export const ANY_OBJECT = '{"type":"object"}';

/**
 * A request's bytes, in a buffer of exact size: the head's fields, the ids in field `idsField` of message 2, the tail's fields.
 * Ids are most of a request, so they are written once, to where they stay.
 */
export function assembleRequest(
  head: Uint8Array,
  idsField: number,
  tokenIds: Uint32Array,
  tail: Uint8Array,
): Uint8Array {
  let packed = 0;
  for (let i = 0; i < tokenIds.length; i++) packed += varintSize(tokenIds[i]!);
  const tokenized = packed === 0 ? 0 : 1 + varintSize(packed) + packed;
  const out = new Uint8Array(head.length + 1 + varintSize(tokenized) + tokenized + tail.length);
  out.set(head);
  let at = head.length;
  out[at++] = (TOKENIZED_FIELD << 3) | WireType.BYTES;
  at = putVarint(out, at, tokenized);
  if (packed > 0) {
    out[at++] = (idsField << 3) | WireType.BYTES;
    at = putVarint(out, at, packed);
    for (let i = 0; i < tokenIds.length; i++) {
      let id = tokenIds[i]!;
      while (id > 127) {
        out[at++] = (id & 127) | 128;
        id >>>= 7;
      }
      out[at++] = id;
    }
  }
  out.set(tail, at);
  return out;
}

/** A seed for a wire that has 32 bits for it: larger ones are folded, so that they stay different from each other. */
export function seed32(seed: number): number {
  const whole = Math.trunc(seed);
  if (Math.abs(whole) <= MAX_INT32) return whole;
  const high = Math.floor(whole / 2 ** 32);
  return (whole ^ high) | 0;
}

/** A seed for a wire that has 64 bits without sign. */
export const seed64 = (seed: number): bigint => BigInt.asUintN(64, BigInt(Math.trunc(seed)));

/** A `map<int32, float>`, or with keys as text a `map<string, float>`. */
export function writeLogitBias(
  out: WireWriter,
  field: number,
  bias: ReadonlyMap<number, number> | undefined,
  keys: "numbers" | "texts",
): void {
  for (const [id, value] of bias ?? []) {
    const entry = out.begin(field);
    if (keys === "numbers") out.int32(1, id);
    else out.string(1, String(id));
    out.float(2, value);
    out.end(entry);
  }
}

/** The meeting place of a pair, for engines that are told one: a message of host, port and room. Throws EngineError "invalid" for another kind. */
export function writeMeeting(out: WireWriter, field: number, handover: Handover | undefined): void {
  if (handover === undefined) return;
  if (handover.kind !== "bootstrap") throw wrongHandover();
  const meeting = out.begin(field);
  out.text(1, handover.host);
  out.int32(2, handover.port);
  out.int64(3, handover.room);
  out.end(meeting);
}

/** Engines of two dialects cannot be a pair. */
export const wrongHandover = (): EngineError =>
  new EngineError("invalid", "the engine of this model takes over no prompts in this way");

/** Stop ids for engines that do not know every id that ends the model's answers. */
export function stopIdsWithEos({ sampling, eosTokenIds }: GenerateRequest): readonly number[] {
  const { stopTokenIds = [], ignoreEos } = sampling;
  if (ignoreEos === true || eosTokenIds === undefined || eosTokenIds.length === 0) return stopTokenIds;
  return [...new Set([...stopTokenIds, ...eosTokenIds])];
}

/** A regular expression that matches the given texts and nothing else, for engines without a constraint of that kind. */
export function regexOfChoices(choices: readonly string[]): string {
  return `(${choices.map((text) => text.replace(/[\\^$.|?*+()[\]{}/-]/g, "\\$&")).join("|")})`;
}
