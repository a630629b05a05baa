import { isUtf8 } from "node:buffer";
import type { TokenDecoder } from "./tokenizer.ts";
import { unfinished } from "./utf8-decoder.ts";

/** What the decoder reads of a vocabulary whose tokens are whole texts or single bytes. */
export interface FallbackTable {
  /** Text of a token; undefined for a byte token, and for ids outside the vocabulary. */
  text(id: number): string | undefined;
  /** The byte of a byte token, else -1. */
  byte(id: number): number;
  isSpecial(id: number): boolean;
}

/**
 * The ByteFallback decoder of the Rust library, in a stream: a run of byte tokens is one text if all of it is UTF-8, else each of its
 * bytes is a U+FFFD. So nothing of a run is certain before it ends (with the next other token, or with the output), unless it can't be
 * UTF-8 any more. Left-out tokens don't end a run. O(1) per token but for the run that ends.
 */
export function fallbackDecoder(table: FallbackTable, skipSpecialTokens: boolean): TokenDecoder {
  let run = new Uint8Array(64);
  let held = 0;
  let broken = false;
  /** Bytes of the run that were seen to be whole characters. */
  let good = 0;
  function end(): string {
    const valid = !broken && isUtf8(run.subarray(0, held));
    const text = valid ? Buffer.from(run.buffer, 0, held).toString() : "\ufffd".repeat(held);
    held = good = 0;
    broken = false;
    return text;
  }
  function hold(byte: number): string {
    if (broken) return "\ufffd";
    if (held === run.length) {
      const larger = new Uint8Array(held * 2);
      larger.set(run);
      run = larger;
    }
    run[held++] = byte;
    const tail = run.subarray(good, held); // at most 4 bytes
    if (unfinished(tail, tail.length) === tail.length) return "";
    if (isUtf8(tail)) {
      good = held;
      return "";
    }
    broken = true;
    const text = "\ufffd".repeat(held);
    held = good = 0;
    return text;
  }
  return {
    push(id) {
      if (skipSpecialTokens && table.isSpecial(id)) return "";
      const text = table.text(id);
      if (text !== undefined) return held > 0 || broken ? end() + text : text;
      const byte = table.byte(id);
      return byte < 0 ? "" : hold(byte);
    },
    end,
  };
}
