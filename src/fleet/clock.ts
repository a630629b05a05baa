/** Time as the control of the fleet knows it: tests bring their own. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls `run` once, not before `ms` have passed. What it gives calls that off. */
  after(ms: number, run: () => void): () => void;
}

/** Longer waits may be longer still by this much: what is due about the same time wakes the process once. */
const grainOf = (ms: number): number => (ms < 1000 ? 10 : ms < 10_000 ? 100 : 1000);

/** The system's time. However many waits there are, one timer runs: that of the next that is due. */
export function systemClock(): Clock & { close(): void } {
  const due = new Map<number, Set<() => void>>();
  let armed = Number.POSITIVE_INFINITY;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function arm(): void {
    clearTimeout(timer);
    armed = Number.POSITIVE_INFINITY;
    for (const at of due.keys()) if (at < armed) armed = at;
    if (armed !== Number.POSITIVE_INFINITY) timer = setTimeout(fire, Math.max(0, armed - Date.now()));
  }

  function fire(): void {
    const now = Date.now();
    const over = [...due].filter(([at]) => at <= now).toSorted(([one], [other]) => one - other);
    for (const [at] of over) due.delete(at);
    arm();
    for (const [, runs] of over) for (const run of runs) run(); // those that one of them calls off are not in it any more
  }

  return {
    now: () => Date.now(),
    after(ms, run) {
      const grain = grainOf(ms);
      const at = Math.ceil((Date.now() + ms) / grain) * grain;
      const once = () => run(); // the same function may wait twice
      const runs = due.get(at) ?? new Set();
      due.set(at, runs.add(once));
      if (at < armed) arm();
      return () => {
        if (!runs.delete(once) || runs.size > 0 || due.get(at) !== runs) return;
        due.delete(at);
        if (at === armed) arm();
      };
    },
    close() {
      due.clear();
      clearTimeout(timer);
    },
  };
}

/** Waits; no longer than until the signal fires. */
export function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const over = () => {
      callOff();
      signal.removeEventListener("abort", over);
      resolve();
    };
    const callOff = clock.after(ms, over);
    signal.addEventListener("abort", over);
  });
}
