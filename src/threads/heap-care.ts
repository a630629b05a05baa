import { edenGC } from "bun:jsc";

/** How often the garbage is estimated, in milliseconds. */
const LOOK_MS = 100;
/** CPU time of a serving thread after which its young objects are collected, in microseconds. */
const CPU_PER_COLLECTION_US = 200_000;
/** Each so many collections of the young objects one of all, made beside the work: requests that were running meanwhile have aged. */
const YOUNG_PER_FULL = 8;

/**
 * Keeps a serving thread's heap small. JavaScriptCore lets garbage grow with all the memory that it knows of, and the tokenizer's
 * shared tables count, so tens of megabytes of short-lived objects pile up. Collecting the young ones early costs one to five
 * milliseconds a time and nothing on the whole; it keeps 256 paced streams about 10 MB, and thousands of short requests a second
 * about 90 MB smaller. CPU time stands for the garbage made, since nothing cheap counts it.
 * @param threads serving threads of the process, which share its CPU clock
 * @returns stops it
 */
export function startHeapCare(threads: number): () => void {
  let last = process.cpuUsage();
  let collections = 0;
  const timer = setInterval(() => {
    const { user, system } = process.cpuUsage(last);
    if (user + system < CPU_PER_COLLECTION_US * threads) return;
    if (++collections % YOUNG_PER_FULL === 0) Bun.gc(false);
    else edenGC();
    last = process.cpuUsage();
  }, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Frees what loading has left behind; tens of milliseconds. */
export function collectAfterLoading(): void {
  Bun.gc(true);
}
