/** Drives a load, in the closed or the open loop, and reads the watched processes around it. */
import type { LoadOptions } from "./options.ts";
import { cpuBetween, readCpu, watchMemory } from "./procfs.ts";
import { poissonArrivals } from "./random.ts";
import { type LoadResult, loadResult, Tally } from "./result.ts";

/** Sends a prepared request now and books its reply; resolves when it is over, whatever came of it. `planned` is its arrival in the open loop. */
export type Send = (tally: Tally, planned: number | undefined) => Promise<void>;

/** What makes requests of a kind. Making the bytes is done before the clock starts. */
export type Prepare = (index: number) => Send;

/** Above this rate the generator would spin all the time to be exact, at the cost of whoever shares its core. */
const MAX_SPIN_RATE = 200;

/** Keeps `streams` requests in flight until `count` have been sent. */
async function closedLoop(prepare: Prepare, streams: number, base: number, count: number, tally: Tally): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) await prepare(base + next++)(tally, undefined);
  };
  await Promise.all(Array.from({ length: Math.min(streams, count) }, lane));
}

/** Sends each request at its planned moment, however many are open. */
async function openLoop(
  prepare: Prepare,
  options: LoadOptions,
  rate: number,
  base: number,
  tally: Tally,
): Promise<void> {
  const arrivals = poissonArrivals(options.requests, rate, options.seed + base);
  const open: Promise<void>[] = [];
  const started = performance.now() + 5;
  for (let i = 0; i < options.requests; i++) {
    const send = prepare(base + i);
    const planned = started + arrivals[i]!;
    await until(planned, rate <= MAX_SPIN_RATE);
    open.push(send(tally, planned));
  }
  await Promise.all(open);
}

/** Waits for a moment. Timers step by a millisecond; the rest is spun away through the event loop where asked. */
export async function until(moment: number, exact: boolean): Promise<void> {
  for (;;) {
    const left = moment - performance.now();
    if (left <= 0) return;
    if (left >= 2) await Bun.sleep(exact ? Math.floor(left) - 1 : left);
    else if (exact) await new Promise((resolve) => setImmediate(resolve));
    else await Bun.sleep(1);
  }
}

/** One repeat of a load. `base` is the number of requests sent before with this seed. */
export async function measure(options: LoadOptions, prepare: Prepare, base: number): Promise<LoadResult> {
  if (options.warmup > 0) await closedLoop(prepare, options.streams, base, options.warmup, new Tally());
  const tally = new Tally();
  const memory = watchMemory(options.pids);
  const ownBefore = readCpu([process.pid]);
  const before = readCpu(options.pids);
  const started = performance.now();
  const first = base + options.warmup;
  const load =
    options.rate === undefined
      ? closedLoop(prepare, options.streams, first, options.requests, tally)
      : openLoop(prepare, options, options.rate, first, tally);
  let limit: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<"timeout">((resolve) => {
    limit = setTimeout(() => resolve("timeout"), options.timeoutMs);
  });
  const outcome = await Promise.race([load, timeout]);
  clearTimeout(limit);
  const wallMs = performance.now() - started;
  const cpuNs = cpuBetween(before, readCpu(options.pids));
  const clientCpuNs = cpuBetween(ownBefore, readCpu([process.pid]));
  const peakBytes = memory.stop();
  if (outcome === "timeout") {
    const open = options.requests - tally.done - tally.errors;
    for (let i = 0; i < open; i++) tally.error("timeout", `open after ${options.timeoutMs / 1000} s`);
  }
  return loadResult(tally, {
    seed: options.seed,
    requests: options.requests,
    wallMs,
    clientCpuNs,
    ...(options.pids.length > 0 && { watched: { cpuNs, peakBytes, idleMsPerSecond: options.idleMsPerSecond } }),
  });
}
