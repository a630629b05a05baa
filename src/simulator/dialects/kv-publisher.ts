import { GrpcStatus } from "../../engines/grpc-error.ts";
import { WireReader } from "../../protobuf/reader.ts";
import { WireWriter } from "../../protobuf/writer.ts";
import type { EngineDriver } from "../core/driver.ts";
import type { KvEvent } from "../core/kv-events.ts";
import type { CoreLoad } from "../core/step.ts";
import type { ProtocolAge } from "../grpc/protocol-age.ts";
import type { ServerCall } from "../grpc/stream.ts";

/** Serves `SubscribeKvEvents` of every dialect: the messages are those of `smg.grpc.common`. */
export interface KvPublisher {
  /** Answers one subscription; `message` is a SubscribeKvEventsRequest. */
  subscribe(call: ServerCall, message: Uint8Array): void;
  /** Ends all subscriptions. */
  stop(): void;
}

interface Subscriber {
  readonly call: ServerCall;
  events: number;
  samples: number;
  /** When the last record went out; 0 before the first. */
  sentAt: number;
  lastLoad: string;
  /** Records in a row that told nothing new. */
  unchanged: number;
}

const POLL_MS = 100;
const HEARTBEAT_MS = 1000;
const SLOW_HEARTBEAT_MS = 5000;
/** A subscriber that is this far behind is cut off. */
const MAX_HELD_BYTES = 16 << 20;
/** Odd, so that hashes stay distinct when they are spread over 64 bits, negative ones included. */
const HASH_SPREAD = 0x9e3779b97f4a7c15n;
const TIER_DEVICE = 1;
const LOCALITY_LOCAL = 1;

/**
 * The engine's KV events as the servicers publish them: live only, one batch per step in which the cache changed. The current ones
 * give a load record with each, and `load_only` batches in between once a first batch was sent, and refuse a cursor; old ones
 * don't know load records, and take any cursor for 0.
 */
export function createKvPublisher(driver: EngineDriver, age: ProtocolAge): KvPublisher {
  const isOld = age === "0.4.14";
  const subscribers = new Set<Subscriber>();
  const { core } = driver;
  const log = core.cache.events;
  const writer = new WireWriter();
  let sequence = 0;
  let timer: ReturnType<typeof setInterval> | undefined;

  const drop = (subscriber: Subscriber): void => {
    subscribers.delete(subscriber);
    if (subscribers.size > 0) return;
    log.listening = false;
    clearInterval(timer);
  };

  const send = (subscriber: Subscriber, events: readonly KvEvent[], load: CoreLoad, loadOnly: boolean): void => {
    const { call } = subscriber;
    if (call.held > MAX_HELD_BYTES) {
      call.end(GrpcStatus.DATA_LOSS, "the subscriber is too slow");
      drop(subscriber);
      return;
    }
    const w = writer.reset();
    w.uint(1, sequence);
    w.double(2, Date.now() / 1000);
    for (const event of events) writeEvent(w, event, ++subscriber.events, core.options.blockSize);
    w.uint32(4, 0);
    const full = loadOnly || subscriber.samples === 0;
    writeLoad(w, load, ++subscriber.samples, core.options.maxRunning, core.options.blockSize, { loadOnly, full });
    call.send(w.written());
    subscriber.sentAt = performance.now();
    const figures = comparable(load);
    subscriber.unchanged = figures === subscriber.lastLoad ? subscriber.unchanged + 1 : 0;
    subscriber.lastLoad = figures;
  };

  driver.onStep = () => {
    const events = log.take();
    if (!events) return;
    sequence++;
    const load = core.load();
    for (const subscriber of [...subscribers]) send(subscriber, events, load, false);
  };

  const poll = (): void => {
    const now = performance.now();
    const load = core.load();
    for (const subscriber of [...subscribers]) {
      if (subscriber.sentAt === 0) continue;
      const due = subscriber.unchanged >= 2 ? SLOW_HEARTBEAT_MS : HEARTBEAT_MS;
      if (comparable(load) !== subscriber.lastLoad || now - subscriber.sentAt >= due) send(subscriber, [], load, true);
    }
  };

  return {
    subscribe(call, message) {
      const r = new WireReader(message);
      let start = 0;
      while (r.next()) {
        if (r.field === 1) start = r.varint64(false);
        else r.skip();
      }
      if (start !== 0 && !isOld) {
        call.end(
          GrpcStatus.OUT_OF_RANGE,
          "KV event replay cursors are per subscription; resubscribe with zero and rebuild",
        );
        return;
      }
      const subscriber: Subscriber = { call, events: 0, samples: 0, sentAt: 0, lastLoad: "", unchanged: 0 };
      subscribers.add(subscriber);
      log.listening = true;
      if (subscribers.size === 1 && !isOld) timer = setInterval(poll, POLL_MS);
      call.onCancel = () => drop(subscriber);
      call.sendHeaders();
    },
    stop() {
      for (const subscriber of [...subscribers]) {
        subscriber.call.end(GrpcStatus.UNAVAILABLE, "the engine is shutting down");
        drop(subscriber);
      }
    },
  };
}

/** The figures whose change is worth a record. */
function comparable(load: CoreLoad): string {
  return `${load.running} ${load.waiting} ${load.waitingUncachedTokens} ${load.blocksInUse} ${load.throughput.toFixed(1)}`;
}

function blockHash(hash: number): bigint {
  return BigInt.asIntN(64, BigInt(hash) * HASH_SPREAD);
}

function writeEvent(w: WireWriter, event: KvEvent, id: number, blockSize: number): void {
  const mark = w.begin(3);
  w.uint(1, id);
  if (event.kind === "stored") {
    const stored = w.begin(2);
    for (const { hash, tokenIds } of event.blocks) {
      const block = w.begin(1);
      w.int64(1, blockHash(hash));
      w.packedUint32(2, tokenIds);
      w.uint(3, blockSize);
      w.end(block);
    }
    if (event.parent !== undefined) {
      w.int64(2, blockHash(event.parent));
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
    for (const hash of event.hashes) w.varint64(blockHash(hash));
    w.end(hashes);
    w.uint(3, TIER_DEVICE);
    w.text(4, "GPU");
    w.uint32(5, 0);
    w.uint(6, LOCALITY_LOCAL);
    w.end(removed);
  } else w.end(w.begin(4));
  w.end(mark);
}

/** EngineLoad in field 8; the rarer members come with heartbeats and the first record. */
function writeLoad(
  w: WireWriter,
  load: CoreLoad,
  sample: number,
  maxRunning: number,
  blockSize: number,
  { loadOnly, full }: { readonly loadOnly: boolean; readonly full: boolean },
): void {
  const number = (field: number, value: number) => {
    w.double(field, value);
  };
  const mark = w.begin(8);
  w.uint(1, load.running);
  w.uint(2, load.waiting);
  w.uint32(3, load.waitingUncachedTokens);
  number(4, load.blocksInUse / load.blocksTotal);
  number(5, load.throughput);
  w.uint(6, maxRunning);
  w.uint(8, sample);
  w.uint(9, loadOnly ? 1 : 0);
  if (full) {
    number(10, load.hitRate);
    w.uint32(11, load.blocksInUse * blockSize);
    w.uint(12, load.blocksTotal * blockSize);
  }
  w.end(mark);
}
