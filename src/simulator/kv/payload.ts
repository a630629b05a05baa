import type { KvEvent } from "../core/kv-events.ts";
import type { KvBatch } from "./feed.ts";
import { singles } from "./grpc-messages.ts";
import { MsgpackWriter } from "./msgpack.ts";
import { wireHash } from "./wire-hash.ts";

/** How an engine writes its events for ZeroMQ. */
export interface PayloadForm {
  /** Events as arrays with the kind first (SGLang, older vLLM), or as maps with a `type` (newer vLLM). The batch is an array in both. */
  readonly events: "arrays" | "maps";
  /** Hashes without sign, as vLLM cuts them out of its digests; SGLang's are signed. */
  readonly unsignedHashes: boolean;
  /** An event for each block, as SGLang has it. */
  readonly eventPerBlock: boolean;
  readonly blockSize: number;
}

const MEDIUM = "GPU";

/** One for all: a payload is copied out. */
const w = new MsgpackWriter();

/** The MessagePack payload of a batch: `[timestamp, events, data-parallel rank]`. */
export function kvPayload(batch: KvBatch, form: PayloadForm): Uint8Array {
  const events = form.eventPerBlock ? batch.events.flatMap(singles) : batch.events;
  w.array(3);
  w.double(batch.at);
  w.array(events.length);
  for (const event of events) writeEvent(event, form);
  w.uint(batch.rank);
  return w.take();
}

type Member = readonly [name: string, write: () => void];

function writeEvent(event: KvEvent, form: PayloadForm): void {
  const [kind, members] = membersOf(event, form);
  if (form.events === "arrays") {
    w.array(1 + members.length);
    w.text(kind);
    for (const [, write] of members) write();
    return;
  }
  w.map(1 + members.length);
  w.text("type");
  w.text(kind);
  for (const [name, write] of members) {
    w.text(name);
    write();
  }
}

/** Members in the order of their places in an array. */
function membersOf(event: KvEvent, form: PayloadForm): [kind: string, members: Member[]] {
  const hash = (value: number): void => {
    const signed = wireHash(value);
    w.big(form.unsignedHashes ? BigInt.asUintN(64, signed) : signed);
  };
  const hashes = (values: readonly number[]): void => {
    w.array(values.length);
    for (const value of values) hash(value);
  };
  const medium: Member = ["medium", () => w.text(MEDIUM)];
  switch (event.kind) {
    case "cleared":
      return ["AllBlocksCleared", []];
    case "removed":
      return ["BlockRemoved", [["block_hashes", () => hashes(event.hashes)], medium]];
    case "stored":
      return [
        "BlockStored",
        [
          ["block_hashes", () => hashes(event.blocks.map((block) => block.hash))],
          ["parent_block_hash", () => (event.parent === undefined ? w.nil() : hash(event.parent))],
          ["token_ids", () => tokenIds(event.blocks, form.blockSize)],
          ["block_size", () => w.uint(form.blockSize)],
          ["lora_id", () => w.nil()],
          medium,
        ],
      ];
  }
}

function tokenIds(blocks: readonly { readonly tokenIds: Uint32Array }[], blockSize: number): void {
  w.array(blocks.length * blockSize);
  for (const block of blocks) for (const id of block.tokenIds) w.uint(id);
}
