import { setImmediate } from "node:timers/promises";

/** Longest time that a long job keeps other requests waiting, milliseconds. */
const SLICE_MS = 5;

/**
 * Lets a long job give way: call it between pieces of work. It returns a promise to wait for when other requests should have their
 * turn, else undefined. The promise rejects with the signal's reason.
 */
export function takingTurns(signal: AbortSignal): () => Promise<void> | undefined {
  let since = performance.now();
  const giveWay = async () => {
    await setImmediate();
    signal.throwIfAborted();
    since = performance.now();
  };
  return () => (performance.now() - since > SLICE_MS ? giveWay() : undefined);
}
