import { GrpcStatus } from "../../engines/grpc-error.ts";
import { WireReader } from "../../protobuf/reader.ts";
import { WireWriter } from "../../protobuf/writer.ts";
import type { CoreLoad } from "../core/step.ts";
import type { ProtocolAge } from "../grpc/protocol-age.ts";
import type { ServerCall } from "../grpc/stream.ts";
import type { RuleBook } from "../script/book.ts";
import type { KvBatch, KvFeed } from "./feed.ts";
import { type BatchContent, snapshotPieces, writeBatch } from "./grpc-messages.ts";

/** Serves `SubscribeKvEvents` of every dialect: the messages are those of `smg.grpc.common`. */
export interface KvRelay {
  /** Answers one subscription; `message` is a SubscribeKvEventsRequest. */
  subscribe(call: ServerCall, message: Uint8Array): void;
  /** Ends all subscriptions. */
  stop(): void;
}

export interface KvRelayOptions {
  readonly age: ProtocolAge;
  /** An event for each block, as SGLang's engine publishes them, numbered over all subscriptions. */
  readonly eventPerBlock: boolean;
  /** It serves the feed's history, or a snapshot, to those who come later. */
  readonly servesHistory: boolean;
  readonly rules: RuleBook;
}

/** Where a subscriber is with a rank. */
interface Cursor {
  /** Number of the last record sent; undefined before the first. */
  sequence: number | undefined;
  samples: number;
  /** When the last record went out. */
  sentAt: number;
  lastLoad: string;
  /** Records in a row that told nothing new. */
  unchanged: number;
}

interface Subscriber {
  readonly call: ServerCall;
  readonly cursors: readonly Cursor[];
  readonly ids: { last: number };
  leave(): void;
}

const POLL_MS = 100;
const HEARTBEAT_MS = 1000;
const SLOW_HEARTBEAT_MS = 5000;
/** A subscriber that is this far behind is cut off. */
const MAX_HELD_BYTES = 16 << 20;

/**
 * The engine's KV events as the servicers relay them. Python's are live only: the current ones tell every rank, give a load record
 * with each batch, and `load_only` ones in between once a first batch was sent, refuse a cursor, and end with DATA_LOSS when they
 * miss a batch; old ones tell rank 0, don't know load records, take any cursor for 0, and a batch they miss is a gap. One with
 * history gives what it has, or a snapshot.
 */
export function createKvRelay(feed: KvFeed, options: KvRelayOptions): KvRelay {
  const { rules, eventPerBlock } = options;
  const isOld = options.age === "0.4.14";
  const servesHistory = options.servesHistory && !isOld;
  const { ranks } = feed;
  const subscribers = new Set<Subscriber>();
  const writer = new WireWriter();
  const sharedIds = { last: 0 };
  const told = isOld ? ranks.drivers.slice(0, 1) : ranks.drivers;
  let timer: ReturnType<typeof setInterval> | undefined;

  const drop = (subscriber: Subscriber): void => {
    if (!subscribers.delete(subscriber)) return;
    subscriber.leave();
    if (subscribers.size === 0) clearInterval(timer);
  };
  const end = (subscriber: Subscriber, status: number, details: string): void => {
    drop(subscriber);
    subscriber.call.end(status, details);
  };

  const send = (
    subscriber: Subscriber,
    content: BatchContent & { readonly load: CoreLoad },
    loadOnly = false,
  ): void => {
    const { call } = subscriber;
    if (call.held > MAX_HELD_BYTES) {
      end(subscriber, GrpcStatus.DATA_LOSS, "the subscriber is too slow");
      return;
    }
    const cursor = subscriber.cursors[content.rank]!;
    const { maxRunning, blockSize } = ranks.options;
    const w = writer.reset();
    writeBatch(
      w,
      content,
      { blockSize, eventPerBlock, nextId: () => ++subscriber.ids.last },
      {
        figures: content.load,
        sample: ++cursor.samples,
        maxRunning,
        loadOnly,
        full: loadOnly || cursor.samples === 1,
      },
    );
    call.send(w.written());
    cursor.sequence = content.sequence;
    cursor.sentAt = performance.now();
    const figures = comparable(content.load);
    cursor.unchanged = figures === cursor.lastLoad ? cursor.unchanged + 1 : 0;
    cursor.lastLoad = figures;
  };

  const poll = (): void => {
    const now = performance.now();
    for (const [rank, driver] of told.entries()) {
      const load = driver.core.load();
      for (const subscriber of [...subscribers]) {
        const { sequence, unchanged, lastLoad, sentAt } = subscriber.cursors[rank]!;
        if (sequence === undefined) continue;
        const due = unchanged >= 2 ? SLOW_HEARTBEAT_MS : HEARTBEAT_MS;
        if (comparable(load) !== lastLoad || now - sentAt >= due)
          send(subscriber, { rank, sequence, at: Date.now() / 1000, events: [], load }, true);
      }
    }
  };

  /** Sends what a subscriber with a cursor has missed; false: it is no longer there. */
  const catchUp = (subscriber: Subscriber, start: number): boolean => {
    const from = start === 0 ? feed.first : start + 1;
    if (start !== 0 && told.some((_, rank) => !feed.has(rank, from))) return false;
    for (const [rank, { core }] of told.entries()) {
      if (feed.has(rank, from)) for (const batch of feed.from(rank, from)) send(subscriber, batch);
      else
        for (const piece of snapshotPieces(core.cache, feed.last(rank)))
          send(subscriber, { rank, at: Date.now() / 1000, load: core.load(), ...piece });
    }
    return true;
  };

  return {
    subscribe(call, message) {
      const { start, loadsFirst } = readRequest(message);
      if (rules.takeOf("kv-out-of-range") || (start !== 0 && !isOld && !servesHistory)) {
        call.end(GrpcStatus.OUT_OF_RANGE, NO_CURSORS);
        return;
      }
      if (servesHistory) for (const rank of told.keys()) feed.settle(rank);
      const leave = feed.listen({
        batch(batch: KvBatch) {
          if (batch.rank < told.length) send(subscriber, batch);
        },
        lost() {
          if (!isOld) end(subscriber, GrpcStatus.DATA_LOSS, "KV event batches were lost; resubscribe and rebuild");
        },
        cut: () => end(subscriber, GrpcStatus.UNAVAILABLE, "the KV event stream was reset"),
      });
      const cursors = ranks.drivers.map(() => ({
        sequence: loadsFirst && servesHistory ? 0 : undefined,
        samples: 0,
        sentAt: 0,
        lastLoad: "",
        unchanged: 0,
      }));
      const subscriber: Subscriber = { call, cursors, ids: eventPerBlock ? sharedIds : { last: 0 }, leave };
      subscribers.add(subscriber);
      call.onCancel = () => drop(subscriber);
      if (servesHistory && !catchUp(subscriber, start)) {
        end(subscriber, GrpcStatus.OUT_OF_RANGE, NO_CURSORS);
        return;
      }
      if (subscribers.size === 1 && !isOld) timer = setInterval(poll, POLL_MS);
      call.sendHeaders();
    },
    stop() {
      for (const subscriber of [...subscribers]) end(subscriber, GrpcStatus.UNAVAILABLE, "the engine is shutting down");
    },
  };
}

const NO_CURSORS = "KV event replay cursors are per subscription; resubscribe with zero and rebuild";

function readRequest(message: Uint8Array): { start: number; loadsFirst: boolean } {
  const r = new WireReader(message);
  let start = 0;
  let loadsFirst = false;
  while (r.next()) {
    if (r.field === 1) start = r.varint64(false);
    else if (r.field === 2) loadsFirst = r.bool();
    else r.skip();
  }
  return { start, loadsFirst };
}

/** The figures whose change is worth a record. */
function comparable(load: CoreLoad): string {
  return `${load.running} ${load.waiting} ${load.waitingUncachedTokens} ${load.blocksInUse} ${load.throughput.toFixed(1)}`;
}
