/** The decoder ByteFallback as a stream over tokens: those of the form `<0xE2>` are bytes. See `ByteRun`. */
import { byteRun } from "../byte-run.ts";

export interface ByteFallbackStream {
  /** Takes a token; `emit` gets the tokens that are certain, in order. */
  push(token: string, emit: (token: string) => void): void;
  /** Takes a byte of a run. */
  pushByte(byte: number, emit: (token: string) => void): void;
  /** Ends the run, if there is one. */
  end(emit: (token: string) => void): void;
}

/** The byte that a token stands for, or -1. */
export function byteOfToken(token: string): number {
  if (token.length !== 6 || !token.startsWith("<0x") || token[5] !== ">") return -1;
  const digits = token.slice(3, 5);
  // a sign before a digit is a number to the library
  return /^(?:[0-9a-fA-F]{2}|\+[0-9a-fA-F])$/.test(digits) ? Number.parseInt(digits.replace("+", ""), 16) : -1;
}

export function byteFallbackStream(): ByteFallbackStream {
  const run = byteRun();
  type Emit = (token: string) => void;
  const giveLost = (bytes: number, emit: Emit): void => {
    for (let i = 0; i < bytes; i++) emit("\ufffd");
  };
  const pushByte = (byte: number, emit: Emit): void => giveLost(run.push(byte), emit);
  function end(emit: Emit): void {
    const rest = run.end();
    if (typeof rest === "number") giveLost(rest, emit);
    else if (rest !== undefined) emit(rest);
  }
  return {
    push(token, emit) {
      const byte = byteOfToken(token);
      if (byte >= 0) {
        pushByte(byte, emit);
        return;
      }
      end(emit);
      emit(token);
    },
    pushByte,
    end,
  };
}
