import { chainHash, KvCache, ROOT_HASH } from "./kv-cache.ts";
import type { CoreOptions } from "./options.ts";
import type { Sequence, SequenceRequest } from "./sequence.ts";
import type { CoreLoad, Step } from "./step.ts";

const THROUGHPUT_SMOOTHING = 0.3;
const HIT_RATE_SMOOTHING = 0.2;
/** How long a step without work may be, in virtual milliseconds. */
const LONGEST_WAIT_MS = 3_600_000;

/**
 * The simulated engine: continuous batching over a paged KV cache. It does no I/O and keeps no clock: `beginStep` decides what
 * one step computes and how long that takes, `endStep` hands out the tokens.
 *
 * A step shares one budget of prompt tokens among the running sequences in order, then admits waiting ones first come first
 * served while the prompt's uncached part fits. Every sequence whose prompt is complete decodes one token. When a decode finds
 * no block, the newest running sequence is preempted: it loses its blocks and is computed anew later.
 */
export class EngineCore {
  readonly cache: KvCache;
  readonly running: Sequence[] = [];
  readonly waiting: Sequence[] = [];
  /** Finished, with their blocks kept. */
  private readonly kept = new Set<Sequence>();
  private step: Step | undefined;
  private throughput = 0;
  private hitRate = 0;
  private preemptions = 0;
  private readonly scratch: Uint32Array;

  constructor(readonly options: CoreOptions) {
    const { kvTokens, blockSize, evictAbove, evictTo, prefixCaching, duplicates } = options;
    this.cache = new KvCache(kvTokens, blockSize, evictAbove, evictTo, prefixCaching, duplicates);
    this.scratch = new Uint32Array(blockSize);
  }

  /** Queues a sequence. Its prompt must be shorter than the KV cache. */
  submit(request: SequenceRequest): Sequence {
    const { prompt } = request;
    const sequence: Sequence = {
      request,
      state: "waiting",
      plan: undefined,
      cachedTokens: 0,
      uncachedOnArrival: prompt.length - this.cache.matchedTokens(prompt, prompt.length - 1),
      generated: 0,
      computed: 0,
      target: prompt.length,
      blocks: [],
      tailHash: ROOT_HASH,
      hashedBlocks: 0,
      nextTokenAt: 0,
      preemptions: 0,
    };
    this.waiting.push(sequence);
    return sequence;
  }

  /** Takes a sequence out at once; its blocks are free when this returns. False if it had ended. */
  abort(sequence: Sequence): boolean {
    const list = sequence.state === "waiting" ? this.waiting : sequence.state === "running" ? this.running : undefined;
    if (!list) return false;
    list.splice(list.indexOf(sequence), 1);
    sequence.state = "aborted";
    this.free(sequence);
    return true;
  }

  /** Frees what a finished sequence has kept. False if it keeps nothing. */
  letGo(sequence: Sequence): boolean {
    if (!this.kept.delete(sequence)) return false;
    this.free(sequence);
    return true;
  }

  private pinnedBlocks(): number {
    const blocks = new Set<unknown>();
    for (const sequence of this.kept) for (const block of sequence.blocks) blocks.add(block);
    return blocks.size;
  }

  /** The sequence gets no more tokens, and keeps its place and its blocks. */
  hold(sequence: Sequence): void {
    sequence.nextTokenAt = Number.POSITIVE_INFINITY;
  }

  get busy(): boolean {
    return this.running.length > 0 || this.waiting.length > 0;
  }

  /**
   * Plans the step that starts at `now` (virtual milliseconds). An empty batch without prefill means that every sequence waits
   * for its token interval; `durationMs` is then the time until the first is due.
   */
  beginStep(now: number): Step {
    const { options } = this;
    let budget = options.prefillChunk;
    const batch: Sequence[] = [];
    let preempted = false;
    let waits = false;
    let due = now + LONGEST_WAIT_MS;
    for (let i = 0; i < this.running.length; i++) {
      const sequence = this.running[i]!;
      if (sequence.computed < sequence.target) {
        budget -= this.prefill(sequence, budget);
        if (sequence.computed < sequence.target) continue;
      }
      if (sequence.nextTokenAt > now) {
        due = Math.min(due, sequence.nextTokenAt);
        waits = true;
        continue;
      }
      while (!this.growByOne(sequence)) {
        const victim = this.running.at(-1)!;
        this.preempt(victim);
        preempted = true;
        if (victim === sequence) break;
      }
      if (sequence.state === "running") batch.push(sequence);
    }
    if (!preempted) {
      while (this.waiting.length > 0 && this.running.length < options.maxRunning && budget > 0) {
        const sequence = this.waiting[0]!;
        if (!this.admit(sequence)) break;
        budget -= this.prefill(sequence, budget);
        if (sequence.computed === sequence.target && this.growByOne(sequence)) batch.push(sequence);
      }
    }
    this.cache.evict();
    const prefillTokens = options.prefillChunk - budget;
    const prefillMs = (prefillTokens * 1000) / options.prefillTokensPerSecond;
    const decodeMs = batch.length === 0 ? 0 : options.decodeBaseMs + options.decodePerRequestMs * batch.length;
    const idle = batch.length === 0 && prefillTokens === 0 && waits && !preempted;
    const durationMs = idle ? due - now : Math.max(prefillMs, decodeMs, 1);
    this.step = { durationMs, prefillTokens, batch };
    return this.step;
  }

  /** Ends the step at `now`: gives its tokens, except to those that were aborted or preempted meanwhile. */
  endStep(now: number): void {
    const { step } = this;
    if (!step) return;
    this.step = undefined;
    let tokens = 0;
    let finished = 0;
    for (const sequence of step.batch) {
      if (sequence.state !== "running") continue;
      const { request } = sequence;
      const plan = sequence.plan!;
      const id = plan.idAt(sequence.generated);
      sequence.generated++;
      tokens++;
      if (request.tokenIntervalMs) sequence.nextTokenAt = now + request.tokenIntervalMs;
      // The state goes first: a listener may look at the figures.
      const last = sequence.generated >= plan.length;
      if (last) {
        sequence.state = "finished";
        if (request.keepsBlocks) this.kept.add(sequence);
        else this.free(sequence);
        finished++;
      }
      request.onToken(sequence, id);
      if (last) request.onFinish(sequence);
    }
    if (finished > 0) this.dropFinished();
    const rate = ((tokens + step.prefillTokens) * 1000) / step.durationMs;
    this.throughput += THROUGHPUT_SMOOTHING * (rate - this.throughput);
  }

  /** Forgets the prefix cache. False, with nothing done, while sequences run. */
  flush(): boolean {
    if (this.running.length > 0 || this.kept.size > 0) return false;
    this.cache.flush();
    return true;
  }

  load(): CoreLoad {
    let waitingUncachedTokens = 0;
    for (const sequence of this.waiting) waitingUncachedTokens += sequence.uncachedOnArrival;
    return {
      running: this.running.length,
      waiting: this.waiting.length,
      waitingUncachedTokens,
      blocksInUse: this.cache.inUse,
      blocksPinned: this.pinnedBlocks(),
      blocksCached: this.cache.idleBlocks,
      blocksTotal: this.cache.totalBlocks,
      throughput: this.busy ? this.throughput : 0,
      hitRate: this.hitRate,
      preemptions: this.preemptions,
      evictedBlocks: this.cache.evicted,
    };
  }

  private dropFinished(): void {
    let kept = 0;
    for (const sequence of this.running) if (sequence.state === "running") this.running[kept++] = sequence;
    this.running.length = kept;
  }

  private admit(sequence: Sequence): boolean {
    const { cache } = this;
    const { request } = sequence;
    const { prompt } = request;
    const ids = sequence.generated === 0 ? prompt : spoken(sequence);
    sequence.target = ids.length;
    // The last token is always computed: its logits give the first new token.
    const blocks = cache.takePrefix(ids, ids.length - 1);
    const found = blocks.length * cache.blockSize;
    // What was fetched from another engine is there but for the last token, and is new to this cache.
    const cached = sequence.generated === 0 && request.isFetched ? ids.length - 1 : found;
    const missing = Math.ceil((ids.length + 1) / cache.blockSize) - blocks.length;
    if (missing > cache.available) {
      cache.release(blocks);
      return false;
    }
    for (let i = 0; i < missing; i++) blocks.push(cache.allocate()!);
    sequence.blocks = blocks;
    sequence.computed = cached;
    sequence.hashedBlocks = 0;
    sequence.tailHash = ROOT_HASH;
    for (let at = 0; at < found; at += cache.blockSize) this.nextHash(sequence);
    this.waiting.shift();
    this.running.push(sequence);
    sequence.state = "running";
    if (!sequence.plan) {
      sequence.cachedTokens = request.cachedTokens ?? cached;
      sequence.plan = request.plan(sequence.cachedTokens);
      this.hitRate += HIT_RATE_SMOOTHING * (cached / ids.length - this.hitRate);
    }
    return true;
  }

  /** Extends the sequence's chain by its next block. */
  private nextHash(sequence: Sequence): void {
    const { blockSize } = this.cache;
    const { prompt } = sequence.request;
    const at = sequence.hashedBlocks++ * blockSize;
    if (at + blockSize <= prompt.length) {
      sequence.tailHash = chainHash(sequence.tailHash, prompt, at, at + blockSize);
      return;
    }
    for (let i = 0; i < blockSize; i++) this.scratch[i] = idAt(sequence, at + i);
    sequence.tailHash = chainHash(sequence.tailHash, this.scratch, 0, blockSize);
  }

  /** Computes up to `budget` tokens of the target; returns how many. */
  private prefill(sequence: Sequence, budget: number): number {
    const count = Math.min(budget, sequence.target - sequence.computed);
    sequence.computed += count;
    if (count > 0) this.storeFull(sequence);
    return count;
  }

  private storeFull(sequence: Sequence): void {
    const { cache } = this;
    while ((sequence.hashedBlocks + 1) * cache.blockSize <= sequence.computed) {
      const index = sequence.hashedBlocks;
      const parent = sequence.tailHash;
      this.nextHash(sequence);
      const { blocks, tailHash } = sequence;
      blocks[index] = cache.store(blocks[index]!, tailHash, parent, () => this.blockIds(sequence, index));
    }
  }

  private blockIds(sequence: Sequence, index: number): Uint32Array {
    const { blockSize } = this.cache;
    const ids = new Uint32Array(blockSize);
    for (let i = 0; i < blockSize; i++) ids[i] = idAt(sequence, index * blockSize + i);
    return ids;
  }

  /** Makes room for the token that the next decode writes. */
  private growByOne(sequence: Sequence): boolean {
    const tokens = sequence.request.prompt.length + sequence.generated;
    if (sequence.computed < tokens) {
      sequence.computed = tokens;
      this.storeFull(sequence);
    }
    if (sequence.blocks.length * this.cache.blockSize > tokens) return true;
    const block = this.cache.allocate();
    if (!block) return false;
    sequence.blocks.push(block);
    return true;
  }

  private preempt(sequence: Sequence): void {
    this.running.splice(this.running.indexOf(sequence), 1);
    this.free(sequence);
    sequence.state = "waiting";
    sequence.computed = 0;
    sequence.preemptions++;
    this.preemptions++;
    this.waiting.unshift(sequence);
  }

  private free(sequence: Sequence): void {
    this.cache.release(sequence.blocks);
    sequence.blocks = [];
  }
}

/** Prompt and output of a sequence so far. */
function spoken(sequence: Sequence): ArrayLike<number> {
  const { prompt } = sequence.request;
  const ids = new Uint32Array(prompt.length + sequence.generated);
  ids.set(prompt);
  for (let i = prompt.length; i < ids.length; i++) ids[i] = idAt(sequence, i);
  return ids;
}

/** Token at a position of prompt and output together. */
function idAt(sequence: Sequence, position: number): number {
  const { prompt } = sequence.request;
  return position < prompt.length ? prompt[position]! : sequence.plan!.idAt(position - prompt.length);
}
