/**
 * What engines publish of their caches over ZeroMQ: a batch as msgpack, `[time, events, rank]`. vLLM and SGLang write events as arrays
 * that begin with a name, newer ones of vLLM as maps; arrays end where all that follows has its default, and both grow at their ends.
 */
import { Unpackr } from "msgpackr/unpack";
import { type HashWords, hashCount, type KvBatch, type KvEvent, type KvStored } from "../kv-events.ts";
import { mediaOf } from "./decode.ts";
import { isDevice, isWholePrompt } from "./residence.ts";

/** Bytes that are no batch. */
export class KvPayloadError extends Error {
  override readonly name = "KvPayloadError";
}

/** Hashes need all their 64 bits. */
const unpackr = new Unpackr({ int64AsType: "bigint", useRecords: false, mapsAsObjects: true });

type Members = Readonly<Record<string, unknown>>;

/** Places of members in events that are arrays, behind the name. What comes after them differs between engines. */
const STORED = ["block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium"] as const;
/** Places of vLLM only, which SGLang fills with other things. */
const STORED_VLLM = [
  "lora_name",
  "extra_keys",
  "group_idx",
  "kv_cache_spec_kind",
  "kv_cache_spec_sliding_window",
] as const;
const REMOVED = ["block_hashes", "medium"] as const;

/** Whose arrays they are. */
export type KvPublisher = "vllm" | "sglang";

/** `rank`: that of the publisher, where the batch does not say. Throws KvPayloadError. */
export function unpackKvBatch(payload: Uint8Array, sequence: number, rank: number, from: KvPublisher): KvBatch {
  let batch: unknown;
  try {
    batch = unpackr.unpack(payload);
  } catch (error) {
    throw new KvPayloadError("no msgpack", { cause: error });
  }
  const [events, told] = Array.isArray(batch)
    ? [batch[1], batch[2]]
    : isMembers(batch)
      ? [batch["events"], batch["data_parallel_rank"]]
      : [];
  if (!Array.isArray(events)) throw new KvPayloadError("a batch without events");
  return {
    sequence,
    rank: typeof told === "number" ? told : rank,
    events: events.map((event) => eventOf(event, from)).filter((event) => event !== undefined),
    isLoadOnly: false,
  };
}

function eventOf(event: unknown, from: KvPublisher): KvEvent | undefined {
  const name = Array.isArray(event) ? event[0] : isMembers(event) ? event["type"] : undefined;
  const named = (...places: readonly string[]): Members =>
    Array.isArray(event) ? Object.fromEntries(places.map((place, i) => [place, event[i + 1]])) : (event as Members);
  if (name === "BlockStored") return storedOf(named(...STORED, ...(from === "vllm" ? STORED_VLLM : [])));
  if (name === "BlockRemoved") {
    const { block_hashes, medium } = named(...REMOVED);
    return { kind: "removed", hashes: hashesOf(block_hashes), isLocalDevice: isDevice(textOf(medium) ?? "") };
  }
  if (name === "AllBlocksCleared") return { kind: "cleared" };
  if (typeof name !== "string") throw new KvPayloadError("an event without a name");
  return undefined; // of a kind that is not known
}

function storedOf(event: Members): KvStored {
  const { token_ids, block_size, parent_block_hash: parent, lora_id, extra_keys } = event;
  const hashes = hashesOf(event["block_hashes"]);
  if (!Array.isArray(token_ids) || typeof block_size !== "number" || !(block_size > 0))
    throw new KvPayloadError("stored blocks without tokens");
  // a block that is no whole one ends what can be used
  const whole = Math.min(hashCount(hashes), Math.floor(token_ids.length / block_size));
  const salt = textOf(event["cache_salt"]);
  const name = textOf(event["lora_name"]);
  const isNumbered = typeof lora_id === "number" || typeof lora_id === "bigint";
  return {
    kind: "stored",
    parent: parent === null || parent === undefined ? undefined : hashesOf([parent]),
    hashes: hashes.slice(0, 2 * whole),
    tokenIds: Uint32Array.from(token_ids.slice(0, whole * block_size) as number[]),
    blockSize: block_size,
    lora: name ?? (isNumbered ? `#${lora_id}` : undefined),
    cacheSalt: salt,
    media: Array.isArray(extra_keys)
      ? Array.from({ length: whole }, (_, i) => mediaOf(extrasOf(extra_keys[i]), name, salt))
      : undefined,
    isLocalDevice: isDevice(textOf(event["medium"]) ?? "") && isWholePrompt(textOf(event["kv_cache_spec_kind"]) ?? ""),
  };
}

/** What went into a block's hash: names, or pairs of a name and its place in the block. Numbers are places, or adapters. */
function extrasOf(keys: unknown): string[] | undefined {
  if (!Array.isArray(keys)) return undefined;
  return keys.flatMap((key) => {
    const named = Array.isArray(key) ? key[0] : key;
    if (named instanceof Uint8Array) return [Buffer.from(named).toString("base64")];
    return typeof named === "string" ? [named] : [];
  });
}

function hashesOf(value: unknown): HashWords {
  if (!Array.isArray(value)) throw new KvPayloadError("blocks without hashes");
  const hashes = new BigInt64Array(value.length);
  for (let i = 0; i < hashes.length; i++) hashes[i] = hashOf(value[i]);
  return new Int32Array(hashes.buffer);
}

/** Numbers of any size up to 64 bits, and longer digests, of which the last eight bytes count. */
function hashOf(value: unknown): bigint {
  if (typeof value === "bigint") return BigInt.asIntN(64, value);
  if (typeof value === "number" && Number.isInteger(value)) return BigInt(value);
  if (!(value instanceof Uint8Array) || value.length === 0) throw new KvPayloadError("a block with a broken hash");
  let hash = 0n;
  for (const byte of value.subarray(-8)) hash = (hash << 8n) | BigInt(byte);
  return BigInt.asIntN(64, hash);
}

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
const textOf = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);
