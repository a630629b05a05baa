/** What operators ask of the fleet. Plain data in and out: it goes between threads. */
import type { ProfileAsk, RankLoad } from "../engines/admin.ts";
import type { EngineFacts } from "../engines/facts.ts";
import type { JobStatus } from "./jobs.ts";
import type { WorkerPatch } from "./spec-json.ts";
import type { WorkerStatus } from "./worker-record.ts";
import type { WorkerSpec } from "./worker-spec.ts";

/** A worker as it is shown. */
export interface WorkerInfo {
  readonly id: string;
  /** Without its key. */
  readonly spec: WorkerSpec;
  /** With the scheme that it answers to, once that is known. */
  readonly url: string;
  readonly kind: "grpc" | "http" | undefined;
  readonly dialect: string | undefined;
  readonly facts: EngineFacts | undefined;
  /** Ids of the models that it serves. */
  readonly models: readonly string[];
  readonly status: WorkerStatus;
  /** Requests in flight. */
  readonly load: number;
  readonly job: JobStatus | undefined;
}

/** What one worker made of something that was asked of all. */
export interface WorkerOutcome {
  readonly url: string;
  readonly kind: "grpc" | "http";
  /** Why it failed; absent: it did not. */
  readonly error?: string | undefined;
}

export interface WorkerLoads {
  readonly url: string;
  /** Undefined: it does not tell. */
  readonly ranks: readonly RankLoad[] | undefined;
}

/** Rejects with GatewayErrors: WorkerNotFoundError, NoWorkersError, WorkerExistsError, InvalidRequestError, QueueFullError. */
export interface FleetAdmin {
  /** Those that serve a model, or all. */
  listWorkers(model?: string): Promise<readonly WorkerInfo[]>;
  worker(id: string): Promise<WorkerInfo>;
  /** Begins to take it in; its job tells how that goes. */
  addWorker(spec: WorkerSpec): Promise<WorkerInfo>;
  /** The old one serves until the new one is ready. Its key, which is never shown, stays unless another is told or it is to be `keyless`. */
  replaceWorker(id: string, spec: WorkerSpec, keyless?: boolean): Promise<WorkerInfo>;
  patchWorker(id: string, patch: WorkerPatch): Promise<WorkerInfo>;
  /** It leaves when its requests are done. */
  removeWorker(id: string): Promise<WorkerInfo>;
  loads(): Promise<readonly WorkerLoads[]>;
  /** Metrics of all engines in Prometheus' text format. */
  engineMetrics(): Promise<string>;
  /** JSON object of what the first worker that serves tells of its model, or of its server; of those of a model, or of all. */
  told(of: "model" | "server", model?: string): Promise<object>;
  /** Of all workers; each may wait so long to become idle. */
  flushCache(timeoutSecs: number): Promise<readonly WorkerOutcome[]>;
  /** Of the worker of a URL, or of all. */
  startProfile(ask: ProfileAsk, url?: string): Promise<readonly WorkerOutcome[]>;
  stopProfile(url?: string): Promise<readonly WorkerOutcome[]>;
}

export type AdminMethod = keyof FleetAdmin;
