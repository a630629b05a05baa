/** An engine that speaks OpenAI's HTTP API: requests go to it as they came. */
import type { EngineAdmin } from "../admin.ts";
import type { EngineFacts } from "../facts.ts";
import type { KvSource } from "../kv-events.ts";

export type HttpEndpoint = "/v1/chat/completions" | "/v1/completions" | "/v1/embeddings" | "/v1/rerank";

export interface HttpAsk {
  readonly endpoint: HttpEndpoint;
  /** JSON, sent byte for byte. */
  readonly body: string;
  /** Of the client's headers only those that may go on; never its key. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The head of an answer; the body is read by whoever asked, and is cancelled by the signal of the request. */
export interface HttpReply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: ReadableStream<Uint8Array> | null;
}

export interface HttpModel {
  readonly id: string;
  /** Tokens of prompt and answer together; 0 = unknown. */
  readonly contextLength: number;
  /** What was loaded: the same for all names of one model. */
  readonly root?: string | undefined;
  /** Of a LoRA adapter: the model that it belongs to. */
  readonly parent?: string | undefined;
}

export interface HttpEngine extends EngineAdmin {
  readonly url: string;
  readonly facts: EngineFacts;
  /** Resolves at the answer's head, whatever its status; rejects with EngineErrors ("unavailable", "timeout", "cancelled"). */
  forward(ask: HttpAsk, signal: AbortSignal): Promise<HttpReply>;
  /** The text at a path of the server. "unimplemented" where it has no such path. */
  page(path: string, deadlineMs: number): Promise<string>;
  models(deadlineMs: number): Promise<readonly HttpModel[]>;
  /** What the server calls a model that clients know by `id`. */
  nameOf(id: string): string;
  /** What it tells of its prefix cache; absent where nothing is known of a publisher. */
  kvEvents?(): KvSource;
  close(): void;
}
