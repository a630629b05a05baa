import { GrpcStatus } from "../engines/grpc-error.ts";
import type { EngineCall } from "./call.ts";
import type { EngineDriver } from "./core/driver.ts";
import type { OutputPlan, Sequence } from "./core/sequence.ts";
import { playFault } from "./faults.ts";
import type { ServerCall } from "./grpc/stream.ts";
import type { Handover } from "./handover/handover.ts";
import { createLeg, type Leg } from "./handover/leg.ts";
import { opened, type SimulatorHost, takeRule } from "./host.ts";
import { logRequest } from "./log-request.ts";
import { contentFor } from "./output/content.ts";
import { planOutput } from "./output/plan.ts";
import type { Sampling } from "./sampling.ts";
import { isFinal } from "./script/book.ts";
import type { ScriptFault, ScriptRule } from "./script/rule.ts";
import type { RequestOutcome, RequestRecord } from "./stats.ts";

/** A generation request after the dialect has read and checked it. */
export interface GenerationSpec {
  readonly requestId: string;
  readonly prompt: Uint32Array;
  readonly sampling: Sampling;
  readonly stream: boolean;
  /** Data-parallel rank that the request names; absent: the engine balances. */
  readonly rank?: number | undefined;
  /** A constraint starts behind the thought that the prompt has begun. */
  readonly constraintWaits?: boolean;
  readonly extra: Readonly<Record<string, unknown>>;
  /** The KV of the prompt goes to another engine, or comes from one. */
  readonly handover?: Handover | undefined;
}

/** One of the `n` answers of a request. */
export interface Choice {
  readonly index: number;
  sequence: Sequence | undefined;
  /** Tokens that the engine has made. */
  generated: number;
  /** Tokens that went out in chunks, or were trimmed off. */
  sent: number;
  /** Where the last chunk began and ended. */
  lastFrom: number;
  lastTo: number;
  /** Chunks sent so far. */
  chunks: number;
  /** The engine has made its last token. */
  ended: boolean;
  /** Its last message went out. */
  finished: boolean;
}

/** Writes a dialect's messages for a generation. Ids are `choice.sequence.plan.idAt(from .. to)`. */
export interface GenerationWriter<C extends EngineCall = ServerCall> {
  /** Streaming: new tokens `from .. to`; may be empty. */
  chunk(generation: Generation<C>, choice: Choice, from: number, to: number): void;
  /** The end of a choice. */
  complete(generation: Generation<C>, choice: Choice, reason: string): void;
}

/** In what engines differ besides their messages. */
export interface GenerationStyle {
  /** When the last messages of a stream go out: each with its own last token, or all together behind everything. */
  readonly completes: "each" | "all-at-end";
  /**
   * What the engine's Abort call does to an open request: `complete` gives every choice an empty chunk and its last message;
   * `status` ends it with INTERNAL; `silent` leaves a running one open and says no more (a waiting one gets the status);
   * `bare-ok` ends it with OK and without a last message.
   */
  readonly abort: "complete" | "status" | "silent" | "bare-ok";
  /** Every chunk holds one token, whatever else was set. */
  readonly oneTokenChunks: boolean;
  /** A final stop or EOS token is counted, but not sent, unless the request asks for it. */
  readonly trimsStop: boolean;
  /** An EOS of the model's configuration is named as matched stop. */
  readonly namesEos: boolean;
  /** EOS ids that only generation_config.json names stop it too. */
  readonly knowsOtherEos: boolean;
}

/** A running Generate call: it feeds the core, sends what comes, and plays the faults of its rule. */
export class Generation<C extends EngineCall = ServerCall> {
  readonly choices: Choice[] = [];
  readonly rule: ScriptRule | undefined;
  private readonly fault: ScriptFault | undefined;
  private readonly record: RequestRecord;
  private readonly driver: EngineDriver;
  private readonly leg: Leg | undefined;
  private readonly close: () => void;
  private tokens = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private over = false;
  private stalled = false;

  constructor(
    readonly host: SimulatorHost,
    readonly spec: GenerationSpec,
    readonly call: C,
    private readonly style: GenerationStyle,
    private readonly writer: GenerationWriter<C>,
  ) {
    const { prompt, sampling } = spec;
    this.rule = takeRule(host, prompt);
    this.fault = this.rule?.fault;
    this.record = logRequest(host, spec, call, "running");
    const rank = spec.rank ?? host.ranks.next();
    this.record.rank = rank;
    if (spec.rank !== undefined) host.counts.pinnedByRank[rank] = (host.counts.pinnedByRank[rank] ?? 0) + 1;
    this.driver = host.ranks.at(rank);
    this.leg = this.legOf(rank);
    for (let index = 0; index < sampling.n; index++) this.choices.push(newChoice(index));
    this.close = opened(host, spec.requestId, this);
    call.onCancel = () => this.end("cancelled");
    call.onDrain = () => {
      for (const choice of this.choices) this.forward(choice);
    };
    if (this.fault?.kind === "hang") return;
    if (this.rule && this.rule.delayMs > 0) this.timer = setTimeout(() => this.run(), this.rule.delayMs);
    else this.run();
  }

  /** Ends by the engine's Abort call, as its style has it. */
  abort(): void {
    if (this.over) return;
    const { style, call } = this;
    if (style.abort === "complete") this.completeAborted();
    const runs = this.runs();
    this.end("aborted");
    if (style.abort === "complete" || style.abort === "bare-ok") call.end();
    else if (style.abort === "status" || !runs) call.end(GrpcStatus.INTERNAL, "Request aborted");
  }

  /** Whether an abort meets it while it runs: what waits for the other engine of a pair does not. */
  private runs(): boolean {
    return this.leg
      ? this.sequences().some(({ state }) => state === "running")
      : this.choices.some((choice) => choice.sequence?.state !== "waiting");
  }

  private completeAborted(): void {
    for (const choice of this.choices) {
      if (choice.finished) continue;
      if (this.spec.stream) {
        this.sendChunk(choice, choice.generated - choice.sent);
        choice.lastFrom = choice.lastTo = choice.generated;
        this.writer.chunk(this, choice, choice.generated, choice.generated);
      }
      this.writer.complete(this, choice, "abort");
    }
  }

  /** Parameters for the engine that decodes what this one has computed, as JSON. */
  get handoff(): string | undefined {
    return this.leg?.handoff;
  }

  /** A hand-over behind the prefill has one consumer: with several samples there is none. Those that meet do so once for all of them. */
  private legOf(rank: number): Leg | undefined {
    const { host, spec } = this;
    const { handover, requestId, prompt, sampling } = spec;
    const { pairing } = host;
    const isShared = handover?.kind === "give" ? handover.order === "bootstrap" : handover?.countsAsCached === false;
    if (!handover || !pairing || (sampling.n > 1 && !isShared)) return undefined;
    const { driver, fault } = this;
    const counts = host.counts.handover;
    return createLeg(handover, { pairing, driver, rank, ranks: host.ranks.size, counts, requestId, prompt, fault });
  }

  private run(): void {
    if (this.faultDue()) return;
    if (this.leg)
      this.leg.begin(
        () => this.submit(),
        (why) => this.fail(why),
      );
    else this.submit();
  }

  private fail(why: string): void {
    if (this.over) return;
    this.end("failed", why);
    this.call.end(GrpcStatus.INTERNAL, why);
  }

  private submit(): void {
    if (this.over) return;
    for (const choice of this.choices) {
      choice.sequence = this.driver.submit({
        prompt: this.spec.prompt,
        ...this.leg?.request,
        plan: (cachedTokens) => this.plan(choice, cachedTokens),
        tokenIntervalMs: this.rule?.tokenIntervalMs ?? 0,
        onToken: () => this.token(choice),
        onFinish: () => this.finish(choice),
      });
    }
  }

  private plan(choice: Choice, cachedTokens: number): OutputPlan {
    const { host, spec, rule } = this;
    const { model } = host;
    const { prompt, sampling } = spec;
    if (choice.index === 0) {
      this.record.cachedTokens = cachedTokens;
      host.counts.promptTokens += prompt.length;
      host.counts.cachedTokens += cachedTokens;
    }
    const isEcho = host.echo && rule?.text === undefined && rule?.tokenIds === undefined;
    const asked = sampling.maxTokens ?? (isEcho ? host.echoTokens : Number.POSITIVE_INFINITY);
    return planOutput({
      content: contentFor(host, spec, rule, choice.index, cachedTokens),
      sampling,
      limit: Math.max(1, Math.min(asked, model.contextLength - prompt.length, this.leg?.limit ?? asked)),
      eosTokenIds: model.eosTokenIds,
      otherEosTokenIds: this.style.knowsOtherEos ? model.otherEosTokenIds : [],
      namesEos: this.style.namesEos,
      tokenizer: model.tokenizer,
      ...(rule?.finishReason !== undefined ? { finishReason: rule.finishReason } : {}),
    });
  }

  private token(choice: Choice): void {
    choice.generated++;
    this.tokens++;
    if (this.spec.stream) this.forward(choice);
    if (this.fault) this.faultDue(choice);
  }

  /**
   * Sends what is due of a choice. A reader that lags holds its own call back: tokens are only counted meanwhile, and go out
   * later as the messages they would have been, or as one (`mergeLagging`).
   */
  private forward(choice: Choice): void {
    if (this.over || this.stalled || choice.finished || this.leg?.isHolding) return;
    if (this.spec.stream) {
      for (;;) {
        const pending = choice.generated - choice.sent;
        const size = this.chunkSize(choice);
        if (pending === 0 || (pending < size && !choice.ended)) break;
        if (this.call.blocked) {
          this.call.waitForDrain();
          return;
        }
        const merged = this.host.mergeLagging && !this.style.oneTokenChunks;
        this.sendChunk(choice, merged ? pending : Math.min(pending, size));
      }
    }
    if (!choice.ended) return;
    const together = !this.spec.stream || this.style.completes === "all-at-end";
    if (!together) this.complete(choice);
    else if (this.choices.every((other) => other.ended && (!this.spec.stream || other.sent === other.generated)))
      for (const other of this.choices) this.complete(other);
  }

  private chunkSize(choice: Choice): number {
    if (this.style.oneTokenChunks) return 1;
    const sizes = this.rule?.chunkSizes;
    if (!sizes || sizes.length === 0) return this.host.tokensPerMessage;
    return sizes[Math.min(choice.chunks, sizes.length - 1)]!;
  }

  /** How many of the first `count` tokens of a choice the client gets to see. */
  shown(choice: Choice, count: number): number {
    if (!this.style.trimsStop || this.spec.sampling.keepStop) return count;
    const plan = choice.sequence?.plan;
    return plan?.endsWithStop ? Math.min(count, plan.length - 1) : count;
  }

  private sendChunk(choice: Choice, count: number): void {
    if (count === 0) return;
    const from = choice.sent;
    choice.sent += count;
    const to = this.shown(choice, choice.sent);
    // A chunk of which nothing is left goes out only as the first one.
    if (to <= from && choice.chunks > 0) return;
    choice.lastFrom = from;
    choice.lastTo = Math.max(from, to);
    choice.chunks++;
    this.host.counts.tokensSent += choice.lastTo - from;
    this.host.counts.messagesSent++;
    this.writer.chunk(this, choice, from, choice.lastTo);
  }

  private finish(choice: Choice): void {
    choice.ended = true;
    const { leg, choices } = this;
    if (leg && !this.over && !this.stalled && choices.every(({ ended }) => ended))
      leg.finish(this.sequences(), () => {
        for (const each of choices) this.forward(each);
      });
    else this.forward(choice);
  }

  private complete(choice: Choice): void {
    choice.finished = true;
    const { fault } = this;
    if (fault?.kind !== "no-complete") {
      if (!this.spec.stream) this.host.counts.tokensSent += this.shown(choice, choice.generated);
      this.host.counts.messagesSent++;
      this.writer.complete(this, choice, choice.sequence!.plan!.finishReason);
      if (fault?.kind === "double" && !this.spec.stream)
        this.writer.complete(this, choice, choice.sequence!.plan!.finishReason);
    }
    if (!this.choices.every((other) => other.finished)) return;
    this.end(fault ? "faulted" : "finished");
    this.call.end();
  }

  /** Plays the fault if enough tokens have come, the last one of `choice`; true when nothing more is to be sent. */
  private faultDue(choice?: Choice): boolean {
    const { fault } = this;
    if (this.over || this.stalled) return true;
    if (!fault || !("afterTokens" in fault) || this.tokens < fault.afterTokens) return false;
    if (this.spec.stream) for (const other of this.choices) this.sendChunk(other, other.generated - other.sent);
    if (!isFinal(fault)) {
      if (this.tokens !== fault.afterTokens) return false;
      if (fault.kind !== "double") playFault(fault, this.call, this.host);
      else if (choice && this.spec.stream) this.writer.chunk(this, choice, choice.lastFrom, choice.lastTo);
      return false;
    }
    if (fault.kind === "stall") {
      this.stalled = true;
      for (const { sequence } of this.choices) if (sequence) this.driver.hold(sequence);
      return true;
    }
    this.end("faulted", fault.kind === "status" ? fault.message : undefined);
    playFault(fault, this.call, this.host);
    return true;
  }

  private sequences(): Sequence[] {
    return this.choices.flatMap(({ sequence }) => (sequence ? [sequence] : []));
  }

  /** Books the end once, and frees what the engine holds. The call itself is left to the caller. */
  private end(outcome: RequestOutcome, details?: string): void {
    if (this.over) return;
    this.over = true;
    clearTimeout(this.timer);
    const { host, record, driver } = this;
    const { counts } = host;
    const before = driver.core.cache.inUse;
    for (const sequence of this.sequences()) driver.abort(sequence);
    this.leg?.end(
      this.choices.every(({ finished }) => finished),
      this.sequences(),
    );
    if (outcome === "aborted" || outcome === "cancelled")
      counts.blocksFreedByAborts += before - driver.core.cache.inUse;
    if (outcome === "aborted") counts.abortedByRpc++;
    else if (outcome === "cancelled") counts.abortedByCancel++;
    else if (outcome === "faulted") counts.faulted++;
    else if (outcome === "failed") counts.failed++;
    else counts.finished++;
    record.outcome = outcome;
    if (details !== undefined) record.details = details;
    record.tokensSent = this.choices.reduce((sum, c) => sum + (this.spec.stream ? c.sent : c.generated), 0);
    this.close();
  }
}

function newChoice(index: number): Choice {
  return {
    index,
    sequence: undefined,
    generated: 0,
    sent: 0,
    lastFrom: 0,
    lastTo: 0,
    chunks: 0,
    ended: false,
    finished: false,
  };
}
