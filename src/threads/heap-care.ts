/** How often a thread looks whether it has become idle, in milliseconds. */
const LOOK_MS = 5000;

export interface HeapCare {
  /** Collects all garbage at once; tens of milliseconds. What has been served until now needs no other collection. */
  collect(): void;
  stop(): void;
}

/**
 * Gives memory back after a load: JavaScriptCore collects when more is needed, and an idle thread never needs more. A whole
 * collection takes about 20 ms, so it waits until nobody does.
 * @param work open requests, and how many there have been
 */
export function startHeapCare(work: { readonly size: number; readonly begun: number }): HeapCare {
  let seen = work.begun;
  let collected = seen;
  const collect = (): void => {
    collected = work.begun;
    Bun.gc(true);
  };
  const timer = setInterval(() => {
    const idle = work.size === 0 && work.begun === seen;
    seen = work.begun;
    if (idle && collected !== seen) collect();
  }, LOOK_MS);
  timer.unref();
  return { collect, stop: () => clearInterval(timer) };
}
