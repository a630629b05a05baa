import type { Clock } from "./clock.ts";

/** Pauses between two looks: short at first, since most requests are. */
const FIRST_LOOK_MS = 50;
const LAST_LOOK_MS = 2000;

/** Waits until no request is in flight, or for `mostMs`; gives how many still are. */
export async function drained(
  clock: Clock,
  inFlight: () => number,
  mostMs = Number.POSITIVE_INFINITY,
): Promise<number> {
  const until = clock.now() + mostMs;
  for (let pause = FIRST_LOOK_MS; ; pause = Math.min(pause * 1.5, LAST_LOOK_MS)) {
    const left = inFlight();
    const rest = until - clock.now();
    if (left === 0 || rest <= 0) return left;
    await new Promise<void>((resolve) => clock.after(Math.min(pause, rest), resolve));
  }
}
