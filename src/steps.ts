/**
 * Work that takes milliseconds where a request is large. It is written as a generator that yields between pieces, so that the same code runs
 * at once for small requests, and in turns with other work of the thread for large ones.
 */
import { setImmediate } from "node:timers/promises";

/** Gives way between any two pieces, each of which takes far less than a turn may. */
export type Steps<T> = Generator<void, T, void>;

/** So many items of a list, each of them little work, are a piece. */
export const PIECE_ITEMS = 64;
/** So many UTF-16 units of a text are one. */
export const PIECE_TEXT = 1 << 16;
/** How long work is done before others have their turn. */
const TURN_MS = 3;

/** Does all of it in one go. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Does what takes long in turns with other work of the thread. What is over soon is there at once, and no promise. */
export function inTurns<T>(steps: Steps<T>): T | Promise<T> {
  const since = performance.now();
  const { done, value } = steps.next();
  return done === true ? value : goneOn(steps, since);
}

async function goneOn<T>(steps: Steps<T>, begun: number): Promise<T> {
  for (let since = begun; ; ) {
    if (performance.now() - since >= TURN_MS) {
      await turn();
      since = performance.now();
    }
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

let last: Promise<void> = Promise.resolve();

/** Of all that takes long, one goes on in each turn of the event loop. */
export function turn(): Promise<void> {
  last = last.then(() => setImmediate());
  return last;
}
