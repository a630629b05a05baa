/** KvEventBatch of `smg.grpc.common`, as servicers write it. */
import type { WireWriter } from "../../protobuf/writer.ts";
import { type KvCache, ROOT_HASH } from "../core/kv-cache.ts";
import type { KvEvent, StoredBlock } from "../core/kv-events.ts";
import type { CoreLoad } from "../core/step.ts";
import { wireHash } from "./wire-hash.ts";

export interface BatchContent {
  readonly rank: number;
  readonly sequence: number;
  /** Seconds since the epoch. */
  readonly at: number;
  readonly events: readonly KvEvent[];
  /** It is a piece of all that the cache holds. */
  readonly snapshot?: { readonly index: number; readonly count: number; readonly blocks: number };
}

export interface EventForm {
  readonly blockSize: number;
  readonly eventPerBlock: boolean;
  nextId(): number;
}

export interface LoadRecord {
  readonly figures: CoreLoad;
  readonly sample: number;
  readonly maxRunning: number;
  readonly loadOnly: boolean;
  /** With the members that come with heartbeats and the first record only. */
  readonly full: boolean;
}

const TIER_DEVICE = 1;
const LOCALITY_LOCAL = 1;
const SNAPSHOT_PIECE_BLOCKS = 512;

export function writeBatch(w: WireWriter, content: BatchContent, form: EventForm, load: LoadRecord): void {
  const { snapshot } = content;
  w.uint(1, content.sequence);
  w.double(2, content.at);
  for (const event of form.eventPerBlock ? content.events.flatMap(singles) : content.events)
    writeEvent(w, event, snapshot ? 0 : form.nextId(), form.blockSize);
  w.uint32(4, content.rank);
  if (snapshot) {
    const mark = w.begin(7);
    w.uint(1, snapshot.index);
    w.uint(2, snapshot.count);
    w.uint(3, snapshot.blocks);
    w.end(mark);
  }
  writeLoad(w, load, form.blockSize);
}

export type SnapshotPiece = Pick<BatchContent, "sequence" | "events"> & Required<Pick<BatchContent, "snapshot">>;

/** All that a cache holds, as batches whose numbers end at `last`: parents first, behind a "cleared". */
export function snapshotPieces(cache: KvCache, last: number): SnapshotPiece[] {
  const stored: KvEvent[] = [...cache.blocks()].map(({ hash, parent, tokenIds }) => ({
    kind: "stored",
    parent: parent === ROOT_HASH ? undefined : parent,
    blocks: [{ hash, tokenIds: tokenIds ?? new Uint32Array(0) }],
  }));
  const count = Math.max(1, Math.min(last, Math.ceil(stored.length / SNAPSHOT_PIECE_BLOCKS)));
  const size = Math.ceil(stored.length / count);
  return Array.from({ length: count }, (_, index) => {
    const part = stored.slice(index * size, (index + 1) * size);
    return {
      sequence: last - count + 1 + index,
      events: index === 0 ? [{ kind: "cleared" }, ...part] : part,
      snapshot: { index, count, blocks: stored.length },
    };
  });
}

/** The same as events of one block each. */
export function singles(event: KvEvent): KvEvent[] {
  if (event.kind === "removed") return event.hashes.map((hash) => ({ kind: "removed", hashes: [hash] }));
  if (event.kind === "cleared") return [event];
  return event.blocks.map((block: StoredBlock, i) => ({
    kind: "stored",
    parent: i === 0 ? event.parent : event.blocks[i - 1]!.hash,
    blocks: [block],
  }));
}

function writeEvent(w: WireWriter, event: KvEvent, id: number, blockSize: number): void {
  const mark = w.begin(3);
  w.uint(1, id);
  if (event.kind === "stored") {
    const stored = w.begin(2);
    for (const { hash, tokenIds } of event.blocks) {
      const block = w.begin(1);
      w.int64(1, wireHash(hash));
      w.packedUint32(2, tokenIds);
      w.uint(3, blockSize);
      w.end(block);
    }
    if (event.parent !== undefined) {
      w.int64(2, wireHash(event.parent));
    }
    w.uint(3, TIER_DEVICE);
    w.text(4, "GPU");
    w.uint32(5, 0);
    w.text(6, "full_attention");
    w.uint(8, LOCALITY_LOCAL);
    w.end(stored);
  } else if (event.kind === "removed") {
    const removed = w.begin(3);
    const hashes = w.begin(1);
    for (const hash of event.hashes) w.varint64(wireHash(hash));
    w.end(hashes);
    w.uint(3, TIER_DEVICE);
    w.text(4, "GPU");
    w.uint32(5, 0);
    w.uint(6, LOCALITY_LOCAL);
    w.end(removed);
  } else w.end(w.begin(4));
  w.end(mark);
}

/** EngineLoad in field 8. */
function writeLoad(w: WireWriter, record: LoadRecord, blockSize: number): void {
  const { figures: load, maxRunning } = record;
  const mark = w.begin(8);
  w.uint(1, load.running);
  w.uint(2, load.waiting);
  w.uint32(3, load.waitingUncachedTokens);
  w.double(4, load.blocksInUse / load.blocksTotal);
  w.double(5, load.throughput);
  w.uint(6, maxRunning);
  w.uint(8, record.sample);
  w.uint(9, record.loadOnly ? 1 : 0);
  if (record.full) {
    w.double(10, load.hitRate);
    w.uint32(11, load.blocksInUse * blockSize);
    w.uint(12, load.blocksTotal * blockSize);
  }
  w.end(mark);
}
