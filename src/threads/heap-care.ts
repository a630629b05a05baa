/** How often a thread looks whether it has become idle, in milliseconds. */
const LOOK_MS = 5000;
/** The same while there was work of late. */
const BUSY_MS = 400;
/** Requests after which a pause of that length is used at once. */
const ENOUGH = 64;
/**
 * With so many open, collections come as often: the runtime has one each second, in which these make ten megabytes of garbage. A
 * collection of what is young takes about a millisecond; memory that is used again need not be asked of the system, which is as much.
 */
const MANY = 128;

export interface HeapCare {
  /** There is work, after a time without. */
  busy(): void;
  /** Collects all garbage at once; tens of milliseconds. What has been served until now needs no other collection. */
  collect(): void;
  stop(): void;
}

/**
 * Keeps the heap small, and gives memory back after a load: JavaScriptCore collects when more is needed, counts shared memory as part
 * of the heap, so that it seldom collects what is old, and an idle thread never needs more. A whole collection takes about 20 ms, so
 * it waits until nobody does.
 * @param work open requests, and how many there have been
 */
export function startHeapCare(work: { readonly size: number; readonly begun: number }): HeapCare {
  let seen = work.begun;
  let collected = seen;
  let next: ReturnType<typeof setTimeout> | undefined;
  const collect = (): void => {
    collected = work.begun;
    Bun.gc(true);
  };
  const watch = (): void => {
    const { begun } = work;
    next = setTimeout(() => {
      next = undefined;
      if (work.size === 0 && work.begun === begun) {
        if (begun - collected >= ENOUGH) collect();
        return;
      }
      if (work.size >= MANY) Bun.gc(false);
      watch();
    }, BUSY_MS);
    next.unref();
  };
  const timer = setInterval(() => {
    const idle = work.size === 0 && work.begun === seen;
    seen = work.begun;
    if (idle && collected !== seen) collect();
  }, LOOK_MS);
  timer.unref();
  return {
    busy() {
      if (next === undefined) watch();
    },
    collect,
    stop() {
      clearInterval(timer);
      clearTimeout(next);
    },
  };
}
