/** Does long works in small pieces, one after another, so that the thread has time for everything else in between. */

/** Longest time without a pause. */
const BURST_MS = 2;
/** A work of so little need not wait for its turn: a millisecond's worth of them may be done before others have had theirs. */
const LITTLE = 256;
const MOST_AT_ONCE = 2048;

export type Work = Generator<void, void, void>;

export interface WorkQueue {
  /** Does a work when all that were given before are done. */
  add(work: Work): void;
  /**
   * Whether a work of so many blocks may be done at once by whoever asks, which is most of the cost of a small one: nothing waits, and not
   * much was done so since the thread had time for all else.
   */
  mayDoNow(blocks: number): boolean;
  /** Nothing more is done. */
  close(): void;
}

export function workQueue(now: () => number = () => performance.now()): WorkQueue {
  const queue: Work[] = [];
  let first = 0;
  let turn: ReturnType<typeof setImmediate> | undefined;
  /** Blocks that may still be done at once: there are more when what did not get through was done in turn. */
  let credit = MOST_AT_ONCE;

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
      credit = MOST_AT_ONCE;
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
    mayDoNow(blocks) {
      if (blocks > LITTLE || blocks > credit || queue.length > first) return false;
      credit -= blocks;
      return true;
    },
    close() {
      if (turn !== undefined) clearImmediate(turn);
      queue.length = 0;
      first = 0;
    },
  };
}
