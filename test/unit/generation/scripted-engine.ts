/** An engine in memory whose answers a test gives itself, one call after the other. */
import {
  type ChoiceFinish,
  type EmbedReply,
  type EmbedRequest,
  type Engine,
  EngineError,
  type GenerateCall,
  type GenerateHandler,
  type GenerateRequest,
  type TokenLogprobs,
} from "../../../src/engines/engine.ts";

/** One generation as the engine's side sees it. */
export class ScriptedCall {
  cancelled = 0;
  paused = 0;
  resumed = 0;
  private over = false;

  constructor(
    readonly request: GenerateRequest,
    private readonly handler: GenerateHandler,
  ) {}

  /** New tokens of a choice. Like a real adapter, the object given out is scrapped afterwards. */
  chunk(
    ids: readonly number[],
    more: { index?: number; logprobs?: TokenLogprobs; promptLogprobs?: TokenLogprobs; cachedTokens?: number } = {},
  ): this {
    if (this.over) return this;
    const tokenIds = new Uint32Array(ids.length + 3);
    tokenIds.set(ids);
    const chunk = {
      index: more.index ?? 0,
      tokenIds,
      count: ids.length,
      promptTokens: this.request.tokenIds.length,
      cachedTokens: more.cachedTokens ?? 0,
      outputLogprobs: more.logprobs,
      promptLogprobs: more.promptLogprobs,
    };
    this.handler.onChunk(chunk);
    tokenIds.fill(0);
    chunk.count = 0;
    return this;
  }

  finish(finish: Partial<ChoiceFinish> & { completionTokens: number }): this {
    if (this.over) return this;
    this.handler.onFinish({
      index: 0,
      reason: "stop",
      rawReason: finish.reason ?? "stop",
      promptTokens: this.request.tokenIds.length,
      cachedTokens: 0,
      ...finish,
    });
    return this;
  }

  idle(): this {
    if (!this.over) this.handler.onIdle();
    return this;
  }

  end(error?: EngineError): this {
    if (this.over) return this;
    this.over = true;
    this.handler.onEnd(error);
    return this;
  }

  cancel(): void {
    this.cancelled++;
    this.end(new EngineError("cancelled", "cancelled"));
  }

  get ended(): boolean {
    return this.over;
  }
}

/** Hands each generation to `script`, which may answer at once or later. */
export class ScriptedEngine implements Engine {
  readonly dialect = "scripted";
  readonly calls: ScriptedCall[] = [];
  closed = 0;

  constructor(
    private readonly script: (call: ScriptedCall) => void = () => {},
    private readonly embedder: Engine["embed"] = () =>
      Promise.reject(new EngineError("invalid", "This model does not support pooling")),
  ) {}

  readonly embeds: EmbedRequest[] = [];
  /** Ids that it was told to end. */
  readonly aborted: string[] = [];

  embed(request: EmbedRequest, signal: AbortSignal): Promise<EmbedReply> {
    this.embeds.push(request);
    return this.embedder(request, signal);
  }

  generate(request: GenerateRequest, handler: GenerateHandler): GenerateCall {
    const call = new ScriptedCall(request, handler);
    this.calls.push(call);
    this.script(call);
    return {
      cancel: () => call.cancel(),
      pause: () => {
        call.paused++;
      },
      resume: () => {
        call.resumed++;
      },
    };
  }

  abort(requestIds: readonly string[]): Promise<void> {
    this.aborted.push(...requestIds);
    return Promise.resolve();
  }
  health(): Promise<{ healthy: boolean; message: string }> {
    return Promise.resolve({ healthy: true, message: "" });
  }
  modelInfo(): Promise<never> {
    return Promise.reject(new EngineError("unimplemented", "no model info"));
  }
  serverInfo(): Promise<never> {
    return Promise.reject(new EngineError("unimplemented", "no server info"));
  }
  serving(): Promise<"serving"> {
    return Promise.resolve("serving");
  }
  loads(): Promise<never> {
    return Promise.reject(new EngineError("unimplemented", "no loads"));
  }
  flushCache(): Promise<never> {
    return Promise.reject(new EngineError("unimplemented", "no flush"));
  }
  startProfile(): Promise<never> {
    return Promise.reject(new EngineError("unimplemented", "no profile"));
  }
  stopProfile(): Promise<never> {
    return Promise.reject(new EngineError("unimplemented", "no profile"));
  }
  tokenizerBundle(): Promise<never> {
    return Promise.reject(new EngineError("unimplemented", "no bundle"));
  }
  close(): void {
    this.closed++;
  }
}
