/** Does long works in small pieces, one after another, so that the thread has time for everything else in between. */

/** Longest time without a pause. */
const BURST_MS = 2;

export type Work = Generator<void, void, void>;

export interface WorkQueue {
  /** Does a work when all that were given before are done. */
  add(work: Work): void;
  /** Nothing more is done. */
  close(): void;
}

export function workQueue(now: () => number = () => performance.now()): WorkQueue {
  const queue: Work[] = [];
  let first = 0;
  let turn: ReturnType<typeof setImmediate> | undefined;

  function run(): void {
    turn = undefined;
    const until = now() + BURST_MS;
    while (first < queue.length) {
      if (queue[first]!.next().done === true) first++;
      if (now() >= until) break;
    }
    if (first === queue.length) {
      queue.length = 0;
      first = 0;
    } else {
      if (first > 1024) {
        queue.splice(0, first);
        first = 0;
      }
      turn = setImmediate(run);
    }
  }

  return {
    add(work) {
      queue.push(work);
      turn ??= setImmediate(run);
    },
    close() {
      if (turn !== undefined) clearImmediate(turn);
      queue.length = 0;
      first = 0;
    },
  };
}
