/** Where workers come from: the command line, a file, DNS, Kubernetes, the workers' API. */
import type { WorkerSpec } from "./worker-spec.ts";

export interface DiscoveredWorker {
  /** Who it is, beyond its address: a pod's UID and port, or the canonical URL. */
  readonly key: string;
  readonly spec: WorkerSpec;
}

/** Told by a source, always with the full list: what is no longer in it leaves the fleet, when no other source has it. */
export interface SourceSink {
  replace(workers: readonly DiscoveredWorker[]): void;
  /** The source cannot see its workers at the moment; those it told of stay. */
  problem(error: Error): void;
}

export interface WorkerSource {
  readonly name: "static" | "file" | "dns" | "kubernetes" | "api";
  /** Tells the sink until the signal fires. Throws where the settings make no sense. */
  start(sink: SourceSink, signal: AbortSignal): void;
}
