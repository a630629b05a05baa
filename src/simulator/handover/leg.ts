import type { EngineDriver } from "../core/driver.ts";
import type { Sequence, SequenceRequest } from "../core/sequence.ts";
import type { ScriptFault } from "../script/rule.ts";
import { Fetch } from "./fetch.ts";
import { type Handover, type HandoverCounts, type Pairing, promptDigest } from "./handover.ts";

/** What one generation has to do with another engine. */
export interface Leg {
  /** Tokens that it makes at most. */
  readonly limit: number;
  /** Members of its requests to the core. */
  readonly request: Pick<SequenceRequest, "isFetched" | "cachedTokens" | "keepsBlocks">;
  /** Nothing may be sent for now. */
  readonly isHolding: boolean;
  /** Parameters for the decode side, as JSON, for the last message. */
  readonly handoff: string | undefined;
  /** Calls one of both, when the core may compute. */
  begin(go: () => void, fail: (why: string) => void): void;
  /** All tokens are made: `done` when the answer may go out. */
  finish(sequences: readonly Sequence[], done: () => void): void;
  /** The generation is over: finished, or broken off with what the core still keeps of it. */
  end(isFinished: boolean, sequences: readonly Sequence[]): void;
}

export interface LegContext {
  readonly pairing: Pairing;
  readonly driver: EngineDriver;
  readonly rank: number;
  /** Ranks of the engine. */
  readonly ranks: number;
  readonly counts: HandoverCounts;
  readonly requestId: string;
  readonly prompt: Uint32Array;
  readonly fault: ScriptFault | undefined;
}

export function createLeg(handover: Handover, context: LegContext): Leg {
  return handover.kind === "give" ? new GivingLeg(handover, context) : new TakingLeg(handover, context);
}

const TRANSFER_FAILED = "KV transfer failed";

/** A prefill whose blocks another engine fetches. */
class GivingLeg implements Leg {
  readonly limit: number;
  readonly request = { keepsBlocks: true };
  handoff: string | undefined;
  isHolding: boolean;
  private readonly engineId: string;
  private blockIds: readonly number[] = [];
  private sequences: readonly Sequence[] = [];
  private lease: ReturnType<typeof setTimeout> | undefined;
  private done: (() => void) | undefined;
  private fail: ((why: string) => void) | undefined;
  private isOffered = false;

  constructor(
    private readonly give: Extract<Handover, { kind: "give" }>,
    private readonly context: LegContext,
  ) {
    const { pairing, ranks, rank } = context;
    this.isHolding = give.order === "bootstrap";
    this.limit = this.isHolding ? 1 : Number.POSITIVE_INFINITY;
    this.engineId = ranks > 1 ? `${pairing.engineId}_dp${rank}` : pairing.engineId;
  }

  begin(go: () => void, fail: (why: string) => void): void {
    this.fail = fail;
    const { depot, timeoutMs } = this.context.pairing;
    if (this.give.order === "after") {
      go();
      return;
    }
    let isComputing = false;
    const computeOnce = (): void => {
      // A second one may ask when the first has left.
      if (!isComputing) go();
      isComputing = true;
    };
    if (this.offer(computeOnce)) depot!.expectWithin(this.give.key, timeoutMs);
    else fail(`${this.give.key} is in use`);
  }

  finish(sequences: readonly Sequence[], done: () => void): void {
    const { context, give } = this;
    const { pairing, counts } = context;
    const sequence = sequences[0]!;
    this.sequences = sequences;
    if (give.order === "bootstrap") {
      this.done = done;
      this.ready(sequence);
      return;
    }
    // What ended by itself has nothing left to decode.
    if (sequence.plan?.finishReason !== "length") this.free();
    else {
      this.blockIds = pairing.depot!.numberBlocks(sequence.blocks.length);
      if (!this.offer(() => undefined)) this.free();
      else {
        const lease = setTimeout(() => {
          counts.expired++;
          this.free();
          pairing.depot!.withdraw(give.key, `the lease of ${give.key} has run out`);
        }, pairing.leaseMs);
        lease.unref();
        this.lease = lease;
        if (give.tells) this.handoff = this.parameters();
        this.ready(sequence);
      }
    }
    done();
  }

  end(isFinished: boolean, sequences: readonly Sequence[]): void {
    if (isFinished) return;
    this.sequences = sequences;
    if (this.isOffered) this.context.pairing.depot!.withdraw(this.give.key, "the prefill was aborted");
    this.free();
  }

  private offer(asked: () => void): boolean {
    const { pairing, prompt, counts } = this.context;
    this.isOffered = pairing.depot!.offer({
      key: this.give.key,
      prompt: promptDigest(prompt),
      engineId: this.engineId,
      blockIds: this.blockIds,
      onAsked: asked,
      onTaken: () => {
        counts.given++;
        this.free();
        this.isHolding = false;
        this.done?.();
      },
      onFailed: (why) => {
        counts.failed++;
        this.free();
        if (this.isHolding) this.fail?.(`${TRANSFER_FAILED}: ${why}`);
      },
      onDropped: () => {
        counts.dropped++;
        this.free();
      },
    });
    return this.isOffered;
  }

  private ready(sequence: Sequence): void {
    const { pairing, prompt, fault } = this.context;
    const slow = fault?.kind === "transfer-slow" ? fault.ms : 0;
    pairing.depot!.ready(this.give.key, {
      cachedTokens: sequence.cachedTokens,
      transferMs: pairing.transferMs(prompt.length - sequence.cachedTokens) + slow,
      failure: fault?.kind === "transfer-fail" ? fault.message : undefined,
    });
  }

  private free(): void {
    clearTimeout(this.lease);
    this.isOffered = false;
    for (const sequence of this.sequences) this.context.driver.letGo(sequence);
  }

  private parameters(): string {
    const { pairing, requestId } = this.context;
    return JSON.stringify({
      do_remote_prefill: true,
      do_remote_decode: false,
      remote_block_ids: this.blockIds,
      remote_engine_id: this.engineId,
      remote_request_id: requestId,
      remote_host: pairing.host,
      remote_port: pairing.depot!.port,
      tp_size: 1,
    });
  }
}

/** A generation whose prompt was computed elsewhere. */
class TakingLeg implements Leg {
  readonly limit = Number.POSITIVE_INFINITY;
  readonly isHolding = false;
  readonly handoff = undefined;
  request: Leg["request"] = {};
  private fetch: Fetch | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isTaken = false;

  constructor(
    private readonly take: Extract<Handover, { kind: "take" }>,
    private readonly context: LegContext,
  ) {}

  begin(go: () => void, fail: (why: string) => void): void {
    const { take, context } = this;
    const { pairing, prompt, counts, fault } = context;
    const failed = (why: string): void => {
      counts.failed++;
      fail(`${TRANSFER_FAILED}: ${why}`);
    };
    this.fetch = new Fetch(take, promptDigest(prompt), pairing.timeoutMs, {
      onArrived: (cachedTokens) => {
        if (fault?.kind === "transfer-fail") {
          this.fetch?.leave(false);
          failed(fault.message);
          return;
        }
        const arrive = (): void => {
          this.fetch?.accept();
          this.isTaken = true;
          counts.taken++;
          this.request = { isFetched: true, cachedTokens: take.countsAsCached ? prompt.length - 1 : cachedTokens };
          go();
        };
        if (fault?.kind === "transfer-slow") this.timer = setTimeout(arrive, fault.ms);
        else arrive();
      },
      onFailed: failed,
    });
  }

  finish(_sequences: readonly Sequence[], done: () => void): void {
    done();
  }

  end(): void {
    clearTimeout(this.timer);
    // A connector that fetches after the prefill's end tells that it will not.
    if (!this.isTaken) this.fetch?.leave(this.take.countsAsCached);
  }
}
