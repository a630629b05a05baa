/** How control gets at workers: by the engines' adapters, or, in tests of the life cycle alone, by a script. */
import type { EngineAdmin } from "../engines/admin.ts";
import type { EngineFacts } from "../engines/facts.ts";
import type { KvSource } from "../engines/kv-events.ts";
import type { CacheName } from "./cache-names.ts";
import type { HttpModelEntry } from "./snapshot.ts";
import type { WorkerSpec } from "./worker-spec.ts";

/** What a worker told of itself when it registered. */
export interface Found {
  /** With the scheme that it answers to. */
  readonly url: string;
  readonly kind: "grpc" | "http";
  readonly dialect: string;
  readonly facts: EngineFacts | undefined;
  readonly waitsForReasoning: boolean | undefined;
  /** Ids of the models that it serves, at least one; those of gRPC workers are loaded. */
  readonly models: readonly string[];
  /** Those of them that its cache has under another name. */
  readonly cacheNames?: ReadonlyMap<string, CacheName> | undefined;
  /** The same, where its requests go on as they came. */
  readonly httpModels: readonly HttpModelEntry[];
  /** Whatever changes when another engine, or one with other settings, answers at the address. */
  readonly identity: string;
}

/** Control's own way to a worker that has registered. */
export interface Contact extends EngineAdmin {
  /** Rejects with what is wrong with it. */
  check(deadlineMs: number): Promise<void>;
  /** `Found.identity` as it is now. */
  identity(deadlineMs: number): Promise<string>;
  /** Of HTTP workers: the text at a path. Rejects with an EngineError "unimplemented" where they have no such path. */
  page?(path: string, deadlineMs: number): Promise<string>;
  /** What it tells of its prefix cache; absent where it has nothing of the kind. */
  kvEvents?(): KvSource;
  close(): void;
}

export interface Door {
  /** Asks a worker for all that must be known before it serves. Rejects with what is wrong with it. */
  register(spec: WorkerSpec, deadlineMs: number, signal: AbortSignal): Promise<Found>;
  /** Opens nothing before the first question. `onLost`: the connection that it keeps to a gRPC worker is over, and not by `close`. */
  contact(spec: WorkerSpec, found: Found, onLost: () => void): Contact;
}
