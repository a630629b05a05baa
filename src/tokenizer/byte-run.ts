import { isUtf8 } from "node:buffer";
import { unfinished } from "./utf8-decoder.ts";

/**
 * A run of byte tokens, as the ByteFallback decoder of the Rust library takes it: if all of it is UTF-8 it is that text, else each of
 * its bytes is one U+FFFD. So nothing of a run is certain before it ends, unless it can't be UTF-8 any more.
 */
export interface ByteRun {
  /** Takes a byte; gives how many of the run's bytes have now turned out to be no text. */
  push(byte: number): number;
  /** Ends the run: its text, or of how many bytes held back each is a U+FFFD. Undefined if there is nothing. */
  end(): string | number | undefined;
}

/** O(1) per byte but for the end. */
export function byteRun(): ByteRun {
  let run = new Uint8Array(64);
  let held = 0;
  let broken = false;
  /** Bytes of the run that were seen to be whole characters. */
  let good = 0;
  return {
    push(byte) {
      if (broken) return 1;
      if (held === run.length) {
        const larger = new Uint8Array(held * 2);
        larger.set(run);
        run = larger;
      }
      run[held++] = byte;
      const tail = run.subarray(good, held); // at most 4 bytes
      if (unfinished(tail, tail.length) === tail.length) return 0;
      if (isUtf8(tail)) {
        good = held;
        return 0;
      }
      broken = true;
      const lost = held;
      held = good = 0;
      return lost;
    },
    end() {
      const rest = held === 0 ? undefined : good === held ? Buffer.from(run.buffer, 0, held).toString() : held;
      held = good = 0;
      broken = false;
      return rest;
    },
  };
}
