/**
 * An engine as the gateway sees it: token ids in, token ids out, whatever the dialect on the wire. One adapter per dialect
 * (vllm.ts, ...) hides how that dialect counts, repeats and ends.
 */
import type { EngineAdmin } from "./admin.ts";
import type { KvSource } from "./kv-events.ts";

/** Constraint on the generated text; at most one. `json_object` is any JSON object. */
export type Constraint =
  | { readonly kind: "json_schema"; readonly schema: string }
  | { readonly kind: "json_object" }
  | { readonly kind: "regex"; readonly pattern: string }
  | { readonly kind: "grammar"; readonly grammar: string }
  | { readonly kind: "structural_tag"; readonly tag: string }
  | { readonly kind: "choice"; readonly choices: readonly string[] };

/** Sampling parameters in the engines' common vocabulary. Absent means the engine's neutral value. */
export interface SamplingParams {
  readonly temperature?: number;
  readonly topP?: number;
  /** 0 = off. */
  readonly topK?: number;
  readonly minP?: number;
  readonly frequencyPenalty?: number;
  readonly presencePenalty?: number;
  readonly repetitionPenalty?: number;
  readonly maxTokens?: number;
  readonly minTokens?: number;
  /** Stop strings. The gateway matches them itself; an adapter may also tell the engine. */
  readonly stop?: readonly string[];
  readonly stopTokenIds?: readonly number[];
  readonly ignoreEos?: boolean;
  readonly skipSpecialTokens?: boolean;
  readonly spacesBetweenSpecialTokens?: boolean;
  readonly includeStopStrInOutput?: boolean;
  readonly n?: number;
  /** Top logprobs per output token: 0 gives the sampled token's only; absent gives none. */
  readonly logprobs?: number;
  readonly promptLogprobs?: number;
  readonly seed?: number;
  readonly logitBias?: ReadonlyMap<number, number>;
  readonly constraint?: Constraint;
}

/** How the KV cache of a prompt comes from the engine that prefills to the one that decodes. */
export type Handover =
  /** Both are told the place of the one that prefills, and a room there (SGLang, TokenSpeed). */
  | { readonly kind: "bootstrap"; readonly host: string; readonly port: number; readonly room: bigint }
  /** Parameters of the engines' connector, as JSON (vLLM). */
  | { readonly kind: "transfer"; readonly json: string }
  /** The decoding engine is told where the other listens (vLLM, Mooncake). */
  | { readonly kind: "remote"; readonly host: string; readonly port: number };

export interface GenerateRequest {
  /** Unique per dispatch; what `abort` names. */
  readonly requestId: string;
  readonly tokenIds: Uint32Array;
  readonly sampling: SamplingParams;
  readonly stream: boolean;
  /** Rank to pin to, for data-parallel engines; absent = the engine balances. */
  readonly dataParallelRank?: number;
  /** Every id that ends an answer of the model: engines that know none of their own, or not all, are told. */
  readonly eosTokenIds?: readonly number[];
  /** The prompt ends inside the model's reasoning. */
  readonly startsInReasoning?: boolean;
  /** The request is one half of a pair: another engine prefills, or decodes. */
  readonly handover?: Handover;
  /** W3C trace context and the like; sent as call metadata. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Logprobs of some tokens, as parallel arrays. `top[i]` are the alternatives at that position, highest first. */
export interface TokenLogprobs {
  readonly tokenIds: readonly number[];
  readonly logprobs: readonly (number | null)[];
  readonly top: readonly { readonly tokenIds: readonly number[]; readonly logprobs: readonly number[] }[];
}

/** New tokens of one choice. The object and its `tokenIds` are reused: valid only during the callback. */
export interface TokenChunk {
  index: number;
  /** `tokenIds[0 .. count)` are the new ids. */
  tokenIds: Uint32Array;
  count: number;
  promptTokens: number;
  cachedTokens: number;
  outputLogprobs: TokenLogprobs | undefined;
  promptLogprobs: TokenLogprobs | undefined;
}

/** `abort` and `error` are failures, never a successful end. */
export type EngineFinishReason = "stop" | "length" | "abort" | "error";

/** End of one choice. All its tokens have been given as chunks before. */
export interface ChoiceFinish {
  readonly index: number;
  readonly reason: EngineFinishReason;
  /** Reason as the engine spelled it. */
  readonly rawReason: string;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** Tokens of this choice, also those that the engine did not send on (trimmed stop tokens). */
  readonly completionTokens: number;
  readonly matchedTokenId?: number;
  readonly matchedStop?: string;
  /** Of an engine that prefills: what the decoding one must be told. */
  readonly handover?: Handover;
}

/** Receiver of a generation. Calls come in order; `onEnd` comes exactly once and last. */
export interface GenerateHandler {
  onChunk(chunk: TokenChunk): void;
  onFinish(finish: ChoiceFinish): void;
  /** After the last message of one read from the socket: flush. */
  onIdle(): void;
  /** All choices have finished (no error), or the generation failed. */
  onEnd(error?: EngineError): void;
}

export interface GenerateCall {
  /**
   * Ends the generation here and at the engine, in every phase. `onEnd` follows, unless it came already. `isEnough`: the engine has done
   * what was wanted, and only need not go on.
   */
  cancel(isEnough?: boolean): void;
  pause(): void;
  resume(): void;
}

/** One text that is to become a vector. */
export interface EmbedRequest {
  /** Unique per dispatch; what `abort` names. */
  readonly requestId: string;
  readonly tokenIds: Uint32Array;
}

/** What an engine's pooling made of a text. */
export interface EmbedReply {
  /** The vector as the model gives it, most often of length 1; of classifiers a number for each label. Never empty, all finite. */
  readonly embedding: Float32Array;
  readonly promptTokens: number;
}

export interface ModelInfo {
  readonly modelPath: string;
  readonly servedModelName: string;
  readonly tokenizerPath: string;
  readonly modelType: string;
  readonly architectures: readonly string[];
  readonly isGeneration: boolean;
  readonly supportsVision: boolean;
  /** Tokens of prompt and output together; 0 = unknown. */
  readonly contextLength: number;
  readonly vocabSize: number;
  readonly eosTokenIds: readonly number[];
  /** Defaults of the model's generation_config that the gateway must apply: temperature, top_p, top_k, min_p, repetition_penalty. */
  readonly defaultSampling: Readonly<Record<string, number>>;
}

export interface ServerInfo {
  readonly dataParallelSize: number;
  /** Requests the engine runs at once; 0 = unknown. */
  readonly maxRunningRequests: number;
  /** KV block size in tokens; 0 = unknown. */
  readonly blockSize: number;
  /** Everything else the engine told, under its wire names. */
  readonly labels: Readonly<Record<string, string>>;
}

/** Files of a model's tokenizer, by flat file name. */
export type TokenizerBundle = ReadonlyMap<string, Uint8Array>;

export interface Engine extends EngineAdmin {
  readonly dialect: string;
  generate(request: GenerateRequest, handler: GenerateHandler): GenerateCall;
  /**
   * The vector of a text. Rejects with EngineErrors: "invalid" where the engine generates only, "cancelled" when `signal` fires; the
   * engine is told then.
   */
  embed(request: EmbedRequest, signal: AbortSignal): Promise<EmbedReply>;
  abort(requestIds: readonly string[]): Promise<void>;
  /** Rejects when the engine cannot be reached. */
  health(deadlineMs: number): Promise<{ readonly healthy: boolean; readonly message: string }>;
  modelInfo(deadlineMs: number): Promise<ModelInfo>;
  serverInfo(deadlineMs: number): Promise<ServerInfo>;
  tokenizerBundle(deadlineMs: number): Promise<TokenizerBundle>;
  /** What it tells of its prefix cache; absent where its dialect has nothing of the kind. */
  kvEvents?(): KvSource;
  close(): void;
}

/** What went wrong at or on the way to an engine, in the gateway's terms. */
export type EngineErrorKind =
  /** The engine refused the request as wrong (400). */
  | "invalid"
  /** The engine is full (429). */
  | "overloaded"
  /** Could not be reached, or the connection was lost (503 before the first byte, 502-like after). */
  | "unavailable"
  /** A deadline passed (504). */
  | "timeout"
  /** The engine does not know the model or adapter (404). */
  | "not_found"
  /** The engine does not offer this (501). */
  | "unimplemented"
  /** The answer could not be made to keep to the constraint (422). */
  | "constraint"
  /** We cancelled it. */
  | "cancelled"
  /** The engine ended the request itself: aborted it, failed inside, or broke the protocol (500). */
  | "failed";

/** Failure of an engine call. `message` is safe to show to clients: the engine's own words, no addresses. */
export class EngineError extends Error {
  override readonly name = "EngineError";
  /** The engine asks for a pause of so many milliseconds before another try. */
  readonly retryAfterMs: number | undefined;
  constructor(
    readonly kind: EngineErrorKind,
    message: string,
    options: { cause?: unknown; retryAfterMs?: number | undefined } = {},
  ) {
    super(message, options);
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** The worker was removed while it answered, and its time to finish is over. */
export class WorkerRemovedError extends EngineError {
  constructor(cause: EngineError) {
    super("unavailable", "the worker was removed before it had finished", { cause });
  }
}
