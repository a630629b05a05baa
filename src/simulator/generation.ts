import type { OutputPlan, Sequence } from "./core/sequence.ts";
import { playFault } from "./faults.ts";
import type { ServerCall } from "./grpc/stream.ts";
import { opened, type SimulatorHost, takeRule } from "./host.ts";
import { contentFor } from "./output/content.ts";
import { planOutput } from "./output/plan.ts";
import type { Sampling } from "./sampling.ts";
import type { ScriptRule } from "./script/rule.ts";
import type { RequestOutcome, RequestRecord } from "./stats.ts";

/** A generation request after the dialect has read and checked it. */
export interface GenerationSpec {
  readonly requestId: string;
  readonly prompt: Uint32Array;
  readonly sampling: Sampling;
  readonly stream: boolean;
  readonly extra: Readonly<Record<string, unknown>>;
}

/** One of the `n` answers of a request. */
export interface Choice {
  readonly index: number;
  sequence: Sequence | undefined;
  /** Tokens that the engine has made. */
  generated: number;
  /** Tokens that went out in chunks. */
  sent: number;
  /** Where the last chunk began. */
  lastFrom: number;
  /** Chunks sent so far. */
  chunks: number;
  /** The engine has made its last token. */
  ended: boolean;
  /** Its last message went out. */
  finished: boolean;
}

/** Writes a dialect's messages for a generation. Ids are `choice.sequence.plan.idAt(from .. to)`. */
export interface GenerationWriter {
  /** Streaming: new tokens `from .. to`; may be empty. */
  chunk(generation: Generation, choice: Choice, from: number, to: number): void;
  /** The end of a choice. */
  complete(generation: Generation, choice: Choice, reason: string): void;
}

/** A running Generate call: it feeds the core, sends what comes, and plays the faults of its rule. */
export class Generation {
  readonly choices: Choice[] = [];
  readonly rule: ScriptRule | undefined;
  private readonly record: RequestRecord;
  private readonly close: () => void;
  private tokens = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private over = false;

  constructor(
    readonly host: SimulatorHost,
    readonly spec: GenerationSpec,
    readonly call: ServerCall,
    private readonly writer: GenerationWriter,
  ) {
    const { prompt, sampling } = spec;
    this.rule = takeRule(host, prompt);
    this.record = logRequest(host, spec, call, "running");
    for (let index = 0; index < sampling.n; index++) this.choices.push(newChoice(index));
    this.close = opened(host, spec.requestId, this);
    call.onCancel = () => this.end("cancelled");
    call.onDrain = () => {
      for (const choice of this.choices) this.forward(choice);
    };
    if (this.rule?.fault?.kind === "hang") return;
    if (this.rule && this.rule.delayMs > 0) this.timer = setTimeout(() => this.run(), this.rule.delayMs);
    else this.run();
  }

  /** Ends by the engine's Abort call: every open choice gets its last message, and the call ends with OK. */
  abort(): void {
    if (this.over) return;
    for (const choice of this.choices) {
      if (choice.finished) continue;
      if (this.spec.stream) {
        this.sendChunk(choice, choice.generated - choice.sent);
        choice.lastFrom = choice.generated;
        this.writer.chunk(this, choice, choice.generated, choice.generated);
      }
      this.writer.complete(this, choice, "abort");
    }
    this.end("aborted");
    this.call.end();
  }

  private run(): void {
    if (this.faultDue()) return;
    for (const choice of this.choices) {
      choice.sequence = this.host.driver.submit({
        prompt: this.spec.prompt,
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
    const asked = sampling.maxTokens ?? (host.echo && !rule ? host.echoTokens : Number.POSITIVE_INFINITY);
    return planOutput({
      content: contentFor(host, spec, rule, choice.index, cachedTokens),
      sampling,
      limit: Math.max(1, Math.min(asked, model.contextLength - prompt.length)),
      eosTokenIds: model.eosTokenIds,
      otherEosTokenIds: model.otherEosTokenIds,
      tokenizer: model.tokenizer,
      ...(rule?.finishReason !== undefined ? { finishReason: rule.finishReason } : {}),
    });
  }

  private token(choice: Choice): void {
    choice.generated++;
    this.tokens++;
    if (this.spec.stream) this.forward(choice);
    if (this.rule?.fault) this.faultDue();
  }

  /**
   * Sends what is due of a choice. A reader that lags holds its own call back: tokens are only counted meanwhile, and go out
   * later as the messages they would have been, or as one (`mergeLagging`).
   */
  private forward(choice: Choice): void {
    if (this.over || choice.finished) return;
    if (this.spec.stream) {
      for (;;) {
        const pending = choice.generated - choice.sent;
        const size = this.chunkSize(choice);
        if (pending === 0 || (pending < size && !choice.ended)) break;
        if (this.call.blocked) {
          this.call.waitForDrain();
          return;
        }
        this.sendChunk(choice, this.host.mergeLagging ? pending : Math.min(pending, size));
      }
    }
    if (choice.ended) this.complete(choice);
  }

  private chunkSize(choice: Choice): number {
    const sizes = this.rule?.chunkSizes;
    if (!sizes || sizes.length === 0) return this.host.tokensPerMessage;
    return sizes[Math.min(choice.chunks, sizes.length - 1)]!;
  }

  private sendChunk(choice: Choice, count: number): void {
    if (count === 0) return;
    const from = choice.sent;
    choice.lastFrom = from;
    choice.sent += count;
    choice.chunks++;
    this.host.counts.tokensSent += count;
    this.host.counts.messagesSent++;
    this.writer.chunk(this, choice, from, choice.sent);
  }

  private finish(choice: Choice): void {
    choice.ended = true;
    this.forward(choice);
  }

  private complete(choice: Choice): void {
    choice.finished = true;
    if (this.rule?.fault?.kind !== "no-complete") {
      if (!this.spec.stream) this.host.counts.tokensSent += choice.generated;
      this.host.counts.messagesSent++;
      this.writer.complete(this, choice, choice.sequence!.plan!.finishReason);
    }
    if (!this.choices.every((other) => other.finished)) return;
    this.end(this.rule?.fault ? "faulted" : "finished");
    this.call.end();
  }

  /** Plays the rule's fault if enough tokens have come; true when the call is over. */
  private faultDue(): boolean {
    const fault = this.rule?.fault;
    if (this.over || !fault || !("afterTokens" in fault) || this.tokens < fault.afterTokens) return this.over;
    if (this.spec.stream) for (const choice of this.choices) this.sendChunk(choice, choice.generated - choice.sent);
    if (fault.kind === "goaway" && fault.code === 0) {
      if (this.tokens === fault.afterTokens) playFault(fault, this.call, this.host);
      return false;
    }
    this.end("faulted", fault.kind === "status" ? fault.message : undefined);
    playFault(fault, this.call, this.host);
    return true;
  }

  /** Books the end once, and frees what the engine holds. The call itself is left to the caller. */
  private end(outcome: RequestOutcome, details?: string): void {
    if (this.over) return;
    this.over = true;
    clearTimeout(this.timer);
    const { host, record } = this;
    const { counts, driver } = host;
    const before = driver.core.cache.inUse;
    for (const choice of this.choices) if (choice.sequence) driver.abort(choice.sequence);
    if (outcome === "aborted" || outcome === "cancelled")
      counts.blocksFreedByAborts += before - driver.core.cache.inUse;
    if (outcome === "aborted") counts.abortedByRpc++;
    else if (outcome === "cancelled") counts.abortedByCancel++;
    else if (outcome === "faulted") counts.faulted++;
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
    chunks: 0,
    ended: false,
    finished: false,
  };
}

/** Books a generation request, one that runs or one that was refused. */
export function logRequest(
  host: SimulatorHost,
  spec: GenerationSpec,
  call: ServerCall,
  outcome: "running" | "refused",
  details?: string,
): RequestRecord {
  host.counts.received++;
  if (outcome === "refused") host.counts.refused++;
  const record: RequestRecord = {
    requestId: spec.requestId,
    promptTokens: spec.prompt.length,
    promptIds: spec.prompt,
    sampling: spec.sampling,
    stream: spec.stream,
    metadata: Object.fromEntries([...call.headers].filter(([name]) => !name.startsWith(":"))),
    extra: spec.extra,
    outcome,
    cachedTokens: 0,
    tokensSent: 0,
    ...(details !== undefined ? { details } : {}),
  };
  host.log.add(record);
  return record;
}
