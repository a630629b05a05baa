/** What the sources of workers tell, turned into who comes and who leaves. */
import type { Logger } from "../telemetry/log.ts";
import { MetricRegistry } from "../telemetry/registry.ts";
import type { WorkerRegistry } from "./registry.ts";
import type { DiscoveredWorker, SourceSink, WorkerSource } from "./worker-source.ts";
import type { WorkerSpec } from "./worker-spec.ts";
import { workerAddress } from "./worker-url.ts";

type Registry = Pick<WorkerRegistry, "own" | "disown" | "replace" | "at">;

/** What one source told last, by its keys. */
type Told = Map<string, WorkerSpec>;

/**
 * Compares each list of a source with its last one, so that what was done to a worker by hand holds until its source says something else
 * of it: one that was removed stays away, settings that were changed stay changed.
 */
export class Sources {
  private readonly told = new Map<string, Told>();

  constructor(
    private readonly registry: Registry,
    private readonly log: Logger,
    private readonly metrics: MetricRegistry = new MetricRegistry(),
  ) {}

  /** Workers that each source tells of. */
  counts(): readonly (readonly [source: string, workers: number])[] {
    return [...this.told].map(([name, workers]) => [name, workers.size]);
  }

  /** Throws where a source's settings make no sense. */
  start(sources: readonly WorkerSource[], signal: AbortSignal): void {
    for (const source of sources) source.start(this.sink(source.name), signal);
  }

  sink(name: string): SourceSink {
    let complained = "";
    return {
      replace: (workers) => {
        complained = "";
        this.replace(name, workers);
      },
      problem: (error) => {
        if (error.message !== complained) this.log.warn("a source of workers fails", { source: name, error });
        complained = error.message;
      },
    };
  }

  /** Workers that were removed since they had failed come anew when their source tells of them again. */
  forget(owners: Iterable<string>): void {
    for (const owner of owners) {
      const [name = "", ...key] = owner.split(" ");
      this.told.get(name)?.delete(key.join(" "));
    }
  }

  private replace(name: string, workers: readonly DiscoveredWorker[]): void {
    const { metrics } = this;
    const began = performance.now();
    const before = this.told.get(name) ?? new Map<string, WorkerSpec>();
    const now = new Map(workers.map(({ key, spec }) => [key, spec]));
    this.told.set(name, now);
    // first those that leave: a new pod may have the address of an old one
    for (const [key, spec] of before) {
      const next = now.get(key);
      if (next !== undefined && isAt(next, spec)) continue;
      this.registry.disown(spec.url, ownerOf(name, key));
      metrics.counter("smg_discovery_deregistrations_total", name, next === undefined ? "removed" : "moved").add();
    }
    for (const [key, spec] of now) {
      try {
        this.take(spec, before.get(key), ownerOf(name, key));
      } catch (error) {
        metrics.counter("smg_discovery_registrations_total", name, "failed").add();
        now.delete(key); // it is tried again with the next list
        this.log.warn("a worker cannot be taken in", { source: name, worker: spec.url, error });
      }
    }
    const took = (performance.now() - began) / 1000;
    metrics.histogram("smg_discovery_sync_duration_seconds", name).observe(took);
  }

  private take(spec: WorkerSpec, before: WorkerSpec | undefined, owner: string): void {
    if (before === undefined || !isAt(spec, before)) {
      this.registry.own(spec, owner);
      this.metrics.counter("smg_discovery_registrations_total", owner.slice(0, owner.indexOf(" ")), "success").add();
      return;
    }
    if (Bun.deepEquals(spec, before)) return;
    const record = this.registry.at(spec.url);
    if (record === undefined) this.registry.own(spec, owner);
    else if (record.owners.has(owner)) this.registry.replace(record.id, spec);
  }
}

/** A name of a source has no blanks. */
const ownerOf = (source: string, key: string): string => `${source} ${key}`;

function isAt(one: WorkerSpec, other: WorkerSpec): boolean {
  try {
    return workerAddress(one.url).place === workerAddress(other.url).place;
  } catch {
    return false;
  }
}
