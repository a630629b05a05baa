/** KV events of engines that publish them over ZeroMQ: one socket for each data-parallel rank, at ports that follow each other. */
import type { KvBatch, KvEnd, KvSource } from "../kv-events.ts";
import { KvPayloadError, type KvPublisher, unpackKvBatch } from "./msgpack.ts";
import { type Replay, sequenceOf, startReplay } from "./replay.ts";
import { connectZmq } from "./zmq.ts";
import type { ZmqAddress } from "./zmq-address.ts";

export interface KvEndpoints {
  readonly events: ZmqAddress;
  /** Where what was sent before can be asked for; not every engine is told to keep it. */
  readonly replay?: ZmqAddress | undefined;
  readonly ranks: number;
  readonly publisher: KvPublisher;
}

const SUBSCRIBE_ALL = Uint8Array.of(1);

export function zmqKvSource({ events, replay, ranks, publisher }: KvEndpoints): KvSource {
  return {
    subscribe(onBatch, onEnd) {
      let isOver = false;
      const of = (address: ZmqAddress, rank: number): ZmqAddress => ({ ...address, port: address.port + rank });
      const feeds = Array.from(
        { length: ranks },
        (_, rank) =>
          new RankFeed({
            events: of(events, rank),
            replay: replay && of(replay, rank),
            read: (payload, sequence) => unpackKvBatch(payload, sequence, rank, publisher),
            onBatch,
            onEnd(why, message) {
              if (isOver) return;
              close();
              onEnd(why, message);
            },
          }),
      );
      function close(): void {
        isOver = true;
        for (const feed of feeds) feed.close();
      }
      return {
        close,
        pause() {
          for (const feed of feeds) feed.pause();
        },
        resume() {
          for (const feed of feeds) feed.resume();
        },
      };
    },
  };
}

interface FeedSetup {
  readonly events: ZmqAddress;
  readonly replay: ZmqAddress | undefined;
  read(payload: Uint8Array, sequence: number): KvBatch;
  onBatch(batch: KvBatch): void;
  onEnd(why: KvEnd, message: string): void;
}

/**
 * Batches of one publisher in order. Where numbers are missing, and at the start, it asks for those before; the newer ones wait in the
 * publisher meanwhile.
 */
class RankFeed {
  private last = -1;
  private replaying: Replay | undefined;
  /** Up to here a replay has told: what comes of it once more is old. */
  private repeated = -1;
  /** What showed that some are missing. */
  private next: { readonly sequence: number; readonly payload: Uint8Array } | undefined;
  private isPaused = false;
  private isOver = false;
  private readonly socket;

  constructor(private readonly setup: FeedSetup) {
    this.socket = connectZmq("SUB", setup.events, {
      onReady: () => {
        this.socket.send([SUBSCRIBE_ALL]);
        this.ask(0);
      },
      onMessage: (frames) => {
        const sequence = sequenceOf(frames.at(-2));
        if (sequence !== undefined && frames.length > 1) this.take(sequence, frames.at(-1)!);
      },
      onClose: (why) => this.end("lost", why),
    });
  }

  pause(): void {
    this.isPaused = true;
    this.socket.pause();
    this.replaying?.pause();
  }

  resume(): void {
    this.isPaused = false;
    if (this.replaying === undefined) this.socket.resume();
    else this.replaying.resume();
  }

  close(): void {
    this.isOver = true;
    this.replaying?.close();
    this.socket.close();
  }

  private end(why: KvEnd, message: string): void {
    if (this.isOver) return;
    this.close();
    this.setup.onEnd(why, message);
  }

  private take(sequence: number, payload: Uint8Array): void {
    if (this.replaying !== undefined) {
      // read together with the one before it; those that are left out here are asked for
      this.next ??= { sequence, payload };
      return;
    }
    if (sequence <= this.repeated) return;
    this.repeated = -1;
    if (this.setup.replay !== undefined && this.last >= 0 && sequence > this.last + 1) {
      this.next = { sequence, payload };
      this.ask(this.last + 1);
    } else this.give(sequence, payload);
  }

  private ask(from: number): void {
    const { replay } = this.setup;
    if (replay === undefined) return;
    this.socket.pause();
    this.replaying = startReplay(
      replay,
      from,
      (sequence, payload) => {
        if (sequence > this.last) this.give(sequence, payload);
      },
      () => {
        this.replaying = undefined;
        const { next } = this;
        this.next = undefined;
        this.repeated = this.last;
        if (next !== undefined && next.sequence > this.last) this.give(next.sequence, next.payload);
        if (!this.isOver && !this.isPaused) this.socket.resume();
      },
    );
    if (this.isPaused) this.replaying.pause();
  }

  private give(sequence: number, payload: Uint8Array): void {
    if (this.isOver) return;
    this.last = sequence;
    let batch: KvBatch;
    try {
      batch = this.setup.read(payload, sequence);
    } catch (error) {
      if (!(error instanceof KvPayloadError)) throw error;
      this.end("gap", `a batch could not be understood: ${error.message}`);
      return;
    }
    this.setup.onBatch(batch);
  }
}
