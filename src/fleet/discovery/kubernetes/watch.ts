/** Keeps up with the pods of one selector. */
import { type Clock, sleep } from "../../clock.ts";
import { KubernetesError, type PodClient, type WatchEvent } from "./client.ts";
import type { PodJson } from "./pods.ts";

export interface WatchSettings {
  /** After so long everything is listed anew: what a watch has missed for whatever reason is wrong no longer. */
  readonly resyncMs: number;
  readonly firstPauseMs: number;
  readonly maxPauseMs: number;
}

/** A watch that held for so long has worked. */
const LASTING_MS = 1000;

/** Hears of pods. */
export interface PodSink {
  /** All there are. */
  all(pods: readonly PodJson[]): void;
  changed(pod: PodJson): void;
  gone(pod: PodJson): void;
  problem(error: Error): void;
}

export interface Surroundings {
  readonly client: PodClient;
  readonly clock: Clock;
  readonly settings: WatchSettings;
  /** From 0 to 1: gateways that lose the API together do not come back together. */
  readonly random: () => number;
}

/** Lists and watches until the signal fires. What goes wrong is told and tried again, with pauses that grow. */
export async function followPods(
  selector: string,
  sink: PodSink,
  around: Surroundings,
  signal: AbortSignal,
): Promise<void> {
  const pauses = new Pauses(around);
  let expiredAt = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    try {
      const { version, pods } = await around.client.list(selector, signal);
      sink.all(pods);
      await watchFrom(version, selector, sink, { ...around, pauses }, signal);
    } catch (error) {
      if (signal.aborted) return;
      const isNews = around.clock.now() - expiredAt >= LASTING_MS;
      if (isExpired(error)) expiredAt = around.clock.now();
      if (isExpired(error) && isNews) continue; // a new list is all it needs
      await failed(error, sink, pauses, around.clock, signal);
    }
  }
}

/** Watches until everything is to be listed anew. Rejects when it has to be listed at once, or may not be watched. */
async function watchFrom(
  start: string,
  selector: string,
  sink: PodSink,
  { client, clock, settings, pauses }: Surroundings & { readonly pauses: Pauses },
  signal: AbortSignal,
): Promise<void> {
  const until = clock.now() + settings.resyncMs;
  let version = start;
  const onEvent = ({ type, object }: WatchEvent) => {
    pauses.worked();
    version = object.metadata?.resourceVersion ?? version;
    if (type === "DELETED") sink.gone(object);
    else if (type !== "BOOKMARK") sink.changed(object);
  };
  for (let left = settings.resyncMs; left > 0 && !signal.aborted; left = until - clock.now()) {
    const began = clock.now();
    let error: unknown;
    try {
      await client.watch(selector, version, left, onEvent, signal);
    } catch (caught) {
      error = caught;
    }
    if (signal.aborted) return;
    if (isExpired(error)) throw error;
    if (clock.now() - began >= LASTING_MS) pauses.worked();
    if (clock.now() >= until) return; // it ended in time, or is silent: the list will tell
    if (error === undefined) await sleep(clock, pauses.failed(), signal);
    else await failed(error, sink, pauses, clock, signal);
  }
}

async function failed(error: unknown, sink: PodSink, pauses: Pauses, clock: Clock, signal: AbortSignal): Promise<void> {
  const pause = pauses.failed();
  // one connection that breaks is nothing to tell of either
  if (pauses.inARow > 1 || error instanceof KubernetesError)
    sink.problem(error instanceof Error ? error : new Error(String(error)));
  await sleep(clock, Math.max(pause, error instanceof KubernetesError ? error.retryAfterMs : 0), signal);
}

const isExpired = (error: unknown): boolean => error instanceof KubernetesError && error.status === 410;

class Pauses {
  inARow = 0;

  constructor(private readonly around: Surroundings) {}

  worked(): void {
    this.inARow = 0;
  }

  /** Milliseconds to wait. */
  failed(): number {
    const { firstPauseMs, maxPauseMs } = this.around.settings;
    const pause = Math.min(maxPauseMs, firstPauseMs * 2 ** Math.min(this.inARow, 30));
    this.inARow++;
    return pause * (0.5 + this.around.random() / 2);
  }
}
