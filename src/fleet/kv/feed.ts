/** The KV events of one worker, from its registration until it leaves. */
import type { RankLoad } from "../../engines/admin.ts";
import { hashCount, type KvBatch, type KvEnd, type KvSource, type KvSubscription } from "../../engines/kv-events.ts";
import type { Logger } from "../../telemetry/log.ts";
import type { MetricRegistry } from "../../telemetry/registry.ts";
import type { PrefixWriter } from "../../threads/prefix-types.ts";
import type { Clock } from "../clock.ts";
import { KvCursor } from "./cursor.ts";
import { CacheMirror, type KvTally } from "./mirror.ts";
import type { Work, WorkQueue } from "./work.ts";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 30_000;
/** Answers came from a worker for so long, and no events: its publisher talks to nobody. */
const SILENCE_MS = 60_000;
/** Blocks that wait to be applied before the engine is made to wait, and when it may go on. */
const MOST_WAITING = 32_768;
const FEW_WAITING = 8192;

export interface FeedSurroundings {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricRegistry;
  readonly work: WorkQueue;
  readonly index: PrefixWriter;
}

/** The worker whose events they are. */
export interface FeedWorker {
  readonly url: string;
  readonly model: string;
  /** Numbers in the index: one for each rank that is chosen by itself, or one for all. */
  readonly members: readonly number[];
  /** Its way now; undefined: there is none at the moment. */
  source(): KvSource | undefined;
  /** It is being taken out: its connections end. */
  isLeaving(): boolean;
  /** Something came of a request since a time, in milliseconds since 1970. */
  hasAnsweredSince(time: number): boolean;
  /** Its events come, or come no more, and the size of its blocks in the index, where they tell. */
  changed(sendsEvents: boolean, blockSize: number | undefined): void;
  /** A rank's load, as it told it just now. */
  load(load: RankLoad): void;
}

export class KvFeed {
  private readonly mirrors: readonly CacheMirror[];
  private subscription: KvSubscription | undefined;
  private cursor = new KvCursor();
  /** That of a subscription that was lost, while what it told still stands. */
  private kept: KvCursor | undefined;
  /** Events came since the last subscription. */
  private isFed = false;
  /** Events came at any time. */
  private wasFed = false;
  private told: { readonly sendsEvents: boolean; readonly blockSize: number | undefined } | undefined;
  /** The numbers when it was told last who has told all: nearly no batch changes that. */
  private seen: KvCursor | undefined;
  private seenChanges = 0;
  /** Members of which the index has it that all is told. */
  private readonly exact = new Set<number>();
  private pauseMs = FIRST_PAUSE_MS;
  private waiting = 0;
  private isPaused = false;
  private isClosed = false;
  private callOff: () => void = () => {};
  private callOffSilence: () => void = () => {};

  constructor(
    private readonly worker: FeedWorker,
    private readonly around: FeedSurroundings,
  ) {
    const { url, model, members } = worker;
    const tally = tallyOf(around.metrics, url);
    this.mirrors = members.map((member) => new CacheMirror(around.index, member, model, tally));
    this.subscribe();
  }

  close(): void {
    this.isClosed = true;
    this.callOff();
    this.callOffSilence();
    this.subscription?.close();
    for (const mirror of this.mirrors) mirror.close();
  }

  private subscribe(): void {
    if (this.isClosed) return;
    const source = this.worker.source();
    if (source === undefined) {
      this.again();
      return;
    }
    this.cursor = new KvCursor(this.kept);
    this.isFed = false;
    this.isPaused = false;
    let isOver = false;
    const cursor = this.cursor;
    const subscription = source.subscribe(
      (batch) => {
        if (!isOver) this.take(batch, cursor);
      },
      (why, message) => {
        isOver = true;
        if (this.subscription === subscription) this.subscription = undefined;
        this.ended(why, message);
      },
    );
    if (!isOver) this.subscription = subscription;
    this.watchSilence();
  }

  private take(batch: KvBatch, cursor: KvCursor): void {
    if (batch.load !== undefined) this.worker.load(batch.load);
    if (batch.isLoadOnly) return;
    const blocks = sizeOf(batch);
    if (this.waiting === 0 && !this.around.index.isBusy && this.around.work.mayDoNow(blocks)) {
      this.applyNow(batch, cursor);
      return;
    }
    this.waiting += blocks;
    if (this.waiting > MOST_WAITING && !this.isPaused) {
      this.isPaused = true;
      this.subscription?.pause();
    }
    this.around.work.add(this.apply(batch, cursor, blocks));
  }

  private applyNow(batch: KvBatch, cursor: KvCursor): void {
    if (this.isClosed || cursor !== this.cursor) return;
    const mirror = this.step(batch);
    if (mirror === undefined) return;
    mirror.applyNow(batch.events);
    this.tell(true);
  }

  private *apply(batch: KvBatch, cursor: KvCursor, blocks: number): Work {
    // what still waits when its subscription ends is of no use
    const isCurrent = () => !this.isClosed && cursor === this.cursor;
    if (isCurrent()) yield* this.applied(batch, isCurrent);
    this.waiting -= blocks;
    if (!this.isPaused || this.waiting > FEW_WAITING) return;
    this.isPaused = false;
    this.subscription?.resume();
  }

  private *applied(batch: KvBatch, isCurrent: () => boolean): Work {
    const mirror = this.step(batch);
    if (mirror === undefined) return;
    for (const _ of mirror.apply(batch.events)) {
      yield;
      if (!isCurrent()) return;
    }
    this.tell(true);
  }

  /** Follows the numbers. Gives the mirror that the batch belongs to, undefined where there is none or it was there already. */
  private step(batch: KvBatch): CacheMirror | undefined {
    if (!this.isFed) this.begin();
    const step = this.cursor.step(batch);
    if (step === "old") return undefined;
    const mirror = this.mirrorOf(batch.rank);
    if (step !== "next") mirror?.clear(); // what is known of a rank's cache is void
    if (step === "gap") this.around.metrics.counter("collie_kv_event_gaps_total", this.worker.url).add();
    return mirror;
  }

  /** Ranks that are one in the index go together. */
  private mirrorOf(rank: number): CacheMirror | undefined {
    return this.mirrors.length === 1 ? this.mirrors[0] : this.mirrors[rank];
  }

  /** The first events of a subscription: what happened since the one before was not told, unless the numbers go on. */
  private begin(): void {
    if (this.wasFed && this.kept === undefined) for (const mirror of this.mirrors) mirror.clear();
    this.isFed = true;
    this.wasFed = true;
    this.pauseMs = FIRST_PAUSE_MS;
    this.callOffSilence();
  }

  private ended(why: KvEnd, message: string): void {
    if (this.isClosed || this.worker.isLeaving()) return;
    const { metrics, log } = this.around;
    this.callOffSilence();
    metrics.counter("smg_kv_event_subscription_failures_total", this.worker.url, why).add();
    log.debug("the subscription to a worker's KV events has ended", { worker: this.worker.url, why, problem: message });
    if (why !== "lost") for (const mirror of this.mirrors) mirror.clear();
    const { isFed, cursor } = this;
    // of ranks that are one in the index, none can begin anew by itself
    const canGoOn = why === "lost" && (this.mirrors.length > 1 || cursor.ranks === 1);
    this.kept = canGoOn ? cursor : undefined;
    this.isFed = false;
    this.cursor = new KvCursor();
    this.tell(false);
    if (why === "unimplemented") return;
    if (why === "gap" && isFed) this.callOff = this.around.clock.after(0, () => this.subscribe());
    else this.again();
  }

  private again(): void {
    this.callOff = this.around.clock.after(this.pauseMs, () => this.subscribe());
    this.pauseMs = Math.min(this.pauseMs * 2, LONGEST_PAUSE_MS);
  }

  private tell(sendsEvents: boolean): void {
    const { blockSize } = this.mirrors[0]!;
    const { cursor, told } = this;
    if (cursor !== this.seen || cursor.changes !== this.seenChanges) this.tellWhole(sendsEvents);
    if (told === undefined ? !sendsEvents : told.sendsEvents === sendsEvents && told.blockSize === blockSize) return;
    this.told = { sendsEvents, blockSize };
    this.worker.changed(sendsEvents, blockSize);
  }

  /**
   * Of a cache that has told all that it holds, what was sent there is soon told as well, or is not there. One that was full before
   * anybody listened tells nothing of what it finds again: that it was sent there counts as with engines that tell nothing.
   */
  private tellWhole(sendsEvents: boolean): void {
    const { cursor, mirrors } = this;
    this.seen = cursor;
    this.seenChanges = cursor.changes;
    for (const [rank, { member }] of mirrors.entries()) {
      const isWhole = sendsEvents && (mirrors.length === 1 ? cursor.areWhole : cursor.isWhole(rank));
      if (isWhole === this.exact.has(member)) continue;
      if (isWhole) this.exact.add(member);
      else this.exact.delete(member);
      this.around.index.setExact(member, isWhole);
    }
  }

  private watchSilence(): void {
    const { clock, log, metrics } = this.around;
    const since = clock.now();
    this.callOffSilence();
    this.callOffSilence = clock.after(SILENCE_MS, () => {
      if (!this.worker.hasAnsweredSince(since)) return this.watchSilence();
      metrics.counter("smg_kv_event_subscription_failures_total", this.worker.url, "silent").add();
      log.warn(
        "a worker answers requests, but tells of no KV events: its publisher must listen, as tcp://*:5557 does",
        {
          worker: this.worker.url,
        },
      );
    });
  }
}

function sizeOf({ events }: KvBatch): number {
  let blocks = 1;
  for (const event of events) if (event.kind !== "cleared") blocks += hashCount(event.hashes);
  return blocks;
}

function tallyOf(metrics: MetricRegistry, worker: string): KvTally {
  const of = (result: string) => {
    const counter = metrics.counter("collie_kv_events_total", worker, result);
    return (blocks: number) => counter.add(blocks);
  };
  const cleared = of("cleared");
  return {
    stored: of("stored"),
    removed: of("removed"),
    orphan: of("orphan"),
    ignored: of("ignored"),
    cleared: () => cleared(1),
  };
}
