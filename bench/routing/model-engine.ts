/**
 * An engine without a wire: the step model of the simulated engine, on a clock that costs nothing. Answers are forgotten when they end:
 * a prompt that goes on from one has its blocks computed again.
 */
import { keyOf } from "../../test/unit/routing/map-index.ts";

const PREFILL_PER_MS = 8;
const CHUNK = 2048;
const MOST_RUNNING = 256;
const STEP_MS = 6;
const STEP_MS_PER_REQUEST = 0.35;
const EVICT_ABOVE = 0.92;
const EVICT_TO = 0.85;
export const BLOCK = 16;

export interface ModelRequest {
  /** Keys of the prompt's blocks, two words each. */
  readonly keys: Int32Array;
  readonly tokens: number;
  readonly answer: number;
  onFirst(time: number, cachedTokens: number): void;
  onEnd(time: number): void;
}

interface Running {
  readonly request: ModelRequest;
  readonly cached: number;
  toPrefill: number;
  made: number;
}

/** What the engine tells as it goes. */
export interface ModelEvents {
  stored(key: number): void;
  removed(key: number): void;
}

const blockAt = (keys: Int32Array, block: number): number => keyOf(keys[2 * block]!, keys[2 * block + 1]!);

export class ModelEngine {
  private readonly waiting: ModelRequest[] = [];
  private running: Running[] = [];
  /** In order of their last use, oldest first; of one prompt the tail comes before the head. */
  private readonly cache = new Set<number>();
  private answered = 0;
  private isStepping = false;

  constructor(
    private readonly capacity: number,
    private readonly events: ModelEvents,
    private readonly at: (time: number, what: () => void) => void,
  ) {}

  /** Share of the KV cache that blocks and running answers take. */
  get usage(): number {
    return Math.min(1, this.usedTokens / this.capacity);
  }

  private get usedTokens(): number {
    return this.cache.size * BLOCK + this.answered;
  }

  add(request: ModelRequest, now: number): void {
    this.waiting.push(request);
    if (!this.isStepping) this.step(now);
  }

  private step(now: number): void {
    this.admit();
    this.isStepping = this.running.length > 0;
    if (!this.isStepping) return;
    let budget = CHUNK;
    let decoding = 0;
    for (const one of this.running) {
      const part = Math.min(budget, one.toPrefill);
      one.toPrefill -= part;
      budget -= part;
      if (one.toPrefill === 0) decoding++;
    }
    const decodeMs = decoding === 0 ? 0 : STEP_MS + STEP_MS_PER_REQUEST * decoding;
    const then = now + Math.max(1, (CHUNK - budget) / PREFILL_PER_MS, decodeMs);
    this.at(then, () => this.finish(then));
  }

  private finish(now: number): void {
    const left: Running[] = [];
    for (const one of this.running) {
      const { request } = one;
      if (one.toPrefill === 0) {
        if (one.made++ === 0) request.onFirst(now, one.cached);
        this.answered++;
        if (one.made >= request.answer) {
          this.answered -= one.made;
          request.onEnd(now);
          continue;
        }
      }
      left.push(one);
    }
    this.running = left;
    this.evict();
    this.step(now);
  }

  private admit(): void {
    for (;;) {
      const request = this.waiting[0];
      if (request === undefined || this.running.length >= MOST_RUNNING) return;
      const { keys, tokens } = request;
      let depth = 0;
      while (2 * depth < keys.length && this.cache.has(blockAt(keys, depth))) depth++;
      const cached = Math.min(depth * BLOCK, Math.floor((tokens - 1) / BLOCK) * BLOCK);
      if (this.running.length > 0 && tokens - cached > this.capacity - this.usedTokens) return;
      this.waiting.shift();
      this.hold(keys);
      this.running.push({ request, cached, toPrefill: tokens - cached, made: 0 });
    }
  }

  private hold(keys: Int32Array): void {
    for (let block = keys.length / 2 - 1; block >= 0; block--) {
      const key = blockAt(keys, block);
      if (!this.cache.delete(key)) this.events.stored(key);
      this.cache.add(key);
    }
  }

  private evict(): void {
    if (this.usedTokens <= EVICT_ABOVE * this.capacity) return;
    for (const key of this.cache) {
      if (this.usedTokens <= EVICT_TO * this.capacity) return;
      this.cache.delete(key);
      this.events.removed(key);
    }
  }
}
